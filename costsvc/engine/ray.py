r"""The ray from nothing to a request: what one more token of each kind costs on the way, integrated.

With :math:`c(x)` the cost of a request of :math:`x` = (uncached, cached, output) tokens, the price of a kind is
:math:`\int_0^1 \partial c / \partial x_i (t x) \, dt`. The cost is smooth but where another bound takes over; there its
slope breaks, and the cells around the break are cut until each grows by what its slopes say.
"""

from collections.abc import Generator
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.search import Array

NODES: Final = 16
RELATIVE_STEP: Final = 1e-3
FEWEST_SHARE: Final = 1e-9
"""Of a request's tokens: a difference over fewer drowns in rounding, so fewer are priced as the first one would be."""
RESIDUAL_SHARE: Final = 2.5e-3
"""Of the cost: a raw sum this near needs no cutting, and what is left is scaled away."""
CELL_RESIDUAL_SHARE: Final = 5e-4
_UNCUT: Final = np.full(NODES, np.nan)
PARTS: Final = 8
ROUNDS: Final = 2

Search = Generator[Array, Array, "Ray"]
"""Yields requests, (points, kinds) in tokens, and is sent their costs, (points,) in accelerator-seconds."""


@dataclass(frozen=True, slots=True)
class Ray:
    """Cells of the ray, each with the slopes at one place in it.

    Parameters
    ----------
    start_shares, end_shares, place_shares : (cells,) array
        Shares of the request. [1]
    token_gpu_s : (cells, kinds) array
        What one more token of a kind costs. [accelerator-second/token]
    growth_gpu_s : (cells,) array
        How much the cost rises across a cell that was cut; NaN where none was needed. [accelerator-second]
    """

    start_shares: Array
    end_shares: Array
    place_shares: Array
    token_gpu_s: Array
    growth_gpu_s: Array

    def prices(self, tokens: Array) -> Array:
        """Mean slopes; those of a cut cell are scaled to its growth. (kinds,) [accelerator-second/token]"""
        widths = self.end_shares - self.start_shares
        if np.isnan(self.growth_gpu_s).all():
            return np.asarray(widths @ self.token_gpu_s)
        attributed = widths * (self.token_gpu_s @ tokens)
        is_scaled = (attributed > 0) & (self.growth_gpu_s > 0)
        scales = np.where(is_scaled, self.growth_gpu_s, 1.0) / np.where(is_scaled, attributed, 1.0)
        return np.asarray((widths * scales) @ self.token_gpu_s)


class Moves:
    """What is asked around places on the ray to `tokens`, (kinds,): each kind a little more, and a little less.

    Kinds of which there is not enough are only asked for more, by a share of all tokens.

    Attributes
    ----------
    at_end : (kinds,) array
        How far each kind is moved at the end of the ray. [token]
    """

    def __init__(self, tokens: Array) -> None:
        # Of three numbers arrays take longer than lists.
        every, are_enough = tokens.tolist(), enough(tokens).tolist()
        more = [
            RELATIVE_STEP * (one if is_enough else sum(every))
            for one, is_enough in zip(every, are_enough, strict=True)
        ]
        less = [one if is_enough else 0.0 for one, is_enough in zip(more, are_enough, strict=True)]
        sides = [
            [one + move * (kind == place) for kind, one in enumerate(every)]
            for moves in (more, [-one for one in less])
            for place, move in enumerate(moves)
        ]
        self.tokens = tokens
        self.at_end = np.asarray(more)
        self._width = np.asarray([up + down for up, down in zip(more, less, strict=True)])
        self._sides = np.asarray(sides)

    def around(self, places: Array) -> Array:
        """The requests around places: of each all kinds a little more, then a little less. (points, kinds)"""
        return np.asarray((places[:, None, None] * self._sides).reshape(-1, len(self.tokens)))

    def slopes(self, costs: Array, places: Array) -> Array:
        """What one more token of each kind costs, from the costs of `around`. (places, kinds)"""
        sides = costs.reshape(len(places), 2, len(self.tokens))
        return np.asarray((sides[:, 0] - sides[:, 1]) / (places[:, None] * self._width))


def along_ray(tokens: Array) -> Search:
    """Slopes on the ray to `tokens`, at Gauss-Legendre nodes or, where these miss the cost, in finer cells.

    The weights of the nodes are the widths of their cells: each node lies in its own.

    References
    ----------
    .. [1] Szego, Orthogonal Polynomials, 1939, section 3.41 (the nodes separate the sums of the weights).
    """
    moves, (starts, ends, places) = Moves(tokens), _first_cells()
    costs = yield np.concatenate([moves.around(places), ends[:, None] * tokens])
    around, at_ends = costs[:-NODES], costs[-NODES:]
    ray = Ray(starts, ends, places, moves.slopes(around, places), _UNCUT)
    attributed = (ends - starts) @ (ray.token_gpu_s @ tokens)
    if abs(attributed / at_ends[-1] - 1.0) < RESIDUAL_SHARE:
        return ray
    return (yield from _cut(ray, moves, np.concatenate([[0.0], at_ends])))


def _cut(ray: Ray, moves: Moves, costs: Array) -> Search:
    """Cut cells whose slopes miss their growth; `costs` are those at the edges of all."""
    low, high = costs[:-1], costs[1:]
    for _ in range(ROUNDS):
        attributed = (ray.end_shares - ray.start_shares) * (ray.token_gpu_s @ moves.tokens)
        missed = np.abs(attributed - (high - low)) > CELL_RESIDUAL_SHARE * costs[-1]
        if not missed.any():
            break
        starts, ends = ray.start_shares[missed, None], ray.end_shares[missed, None]
        shares = np.arange(PARTS + 1) / PARTS
        edges = starts * (1.0 - shares) + ends * shares
        places = ((edges[:, 1:] + edges[:, :-1]) / 2).ravel()
        around, inner = moves.around(places), edges[:, 1:-1].ravel()[:, None] * moves.tokens
        found = yield np.concatenate([around, inner])
        inside = found[len(around) :].reshape(-1, PARTS - 1)
        at_edges = np.concatenate([low[missed, None], inside, high[missed, None]], axis=1)
        parts = Ray(
            edges[:, :-1].ravel(),
            edges[:, 1:].ravel(),
            places,
            moves.slopes(found[: len(around)], places),
            np.diff(at_edges).ravel(),
        )
        low = np.concatenate([low[~missed], at_edges[:, :-1].ravel()])
        high = np.concatenate([high[~missed], at_edges[:, 1:].ravel()])
        ray = _joined(ray, ~missed, parts)
    return ray


def _joined(ray: Ray, kept: Array, parts: Ray) -> Ray:
    return Ray(
        np.concatenate([ray.start_shares[kept], parts.start_shares]),
        np.concatenate([ray.end_shares[kept], parts.end_shares]),
        np.concatenate([ray.place_shares[kept], parts.place_shares]),
        np.concatenate([ray.token_gpu_s[kept], parts.token_gpu_s]),
        np.concatenate([ray.growth_gpu_s[kept], parts.growth_gpu_s]),
    )


def enough(tokens: Array) -> NDArray[np.bool_]:
    """Kinds of which there are so many tokens that the cost can be told from that of fewer."""
    return np.asarray(tokens > FEWEST_SHARE * tokens.sum())


@cache
def _first_cells() -> tuple[Array, Array, Array]:
    """Where cells start and end, and their Gauss-Legendre nodes. Shares of the ray. [1]"""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    edges = np.append(0.0, np.cumsum(weights / 2.0))
    edges[-1] = 1.0
    return edges[:-1], edges[1:], (nodes + 1.0) / 2.0
