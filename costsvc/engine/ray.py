r"""The ray from nothing to a request: what one more token of each kind costs on the way, integrated.

With :math:`c(x)` the cost of a request of :math:`x` = (uncached, cached, output) tokens, the price of a kind is
:math:`\int_0^1 \partial c / \partial x_i (t x) \, dt`. The cost is smooth but where another bound takes over; there its
slope breaks, and the cells around the break are cut until each grows by what its slopes say.
"""

from collections.abc import Generator
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.compiling import compiled, inlined
from costsvc.engine.search import Array

NODES: Final = 16
RELATIVE_STEP: Final = 1e-3
FEWEST_SHARE: Final = 1e-9
"""Of a request's tokens: a difference over fewer drowns in rounding, so fewer are priced as the first one would be."""
RESIDUAL_SHARE: Final = 2.5e-3
"""Of the cost: a raw sum this near needs no cutting, and what is left is scaled away."""
CELL_RESIDUAL_SHARE: Final = 5e-4
PARTS: Final = 8
ROUNDS: Final = 2
_START, _END, _PLACE, _GROWTH, _LOW, _HIGH, _SLOPES = range(7)
"""A cell: its shares of the ray, its growth, the costs at its edges, a slope for each kind; NaN is not known yet."""

Search = Generator[Array, Array, "Ray"]
"""Yields requests, (points, kinds) in tokens, and is sent their costs, (points,) in accelerator-seconds."""


class Ray(NamedTuple):
    """Cells of the ray from its start to its end, each with the slopes at one place in it. (cells, numbers)"""

    cells: Array

    @property
    def start_shares(self) -> Array:
        """Where cells start, as shares of the request. (cells,) [1]"""
        return self.cells[:, _START]

    @property
    def end_shares(self) -> Array:
        """Where they end. (cells,) [1]"""
        return self.cells[:, _END]

    @property
    def place_shares(self) -> Array:
        """Where their slopes are taken. (cells,) [1]"""
        return self.cells[:, _PLACE]

    @property
    def growth_gpu_s(self) -> Array:
        """How much the cost rises across a cell that was cut; NaN where none was. (cells,) [accelerator-second]"""
        return self.cells[:, _GROWTH]

    def prices(self, tokens: Array) -> Array:
        """Mean slopes; those of a cut cell are scaled to its growth. (kinds,) [accelerator-second/token]"""
        return _prices(self.cells, tokens)


class Moves(NamedTuple):
    """What is asked around places on the ray to a request: each kind a little more, and a little less.

    Kinds of which there is not enough are only asked for more, by a share of all tokens.

    Parameters
    ----------
    at_end : (kinds,) array
        How far each kind is moved at the end of the ray. [token]
    sides : (2 * kinds, kinds) array
        The requests there: each kind a little more, then a little less. [token]
    width : (kinds,) array
        How far the two are apart. [token]
    """

    at_end: Array
    sides: Array
    width: Array


@compiled
def moves_of(tokens: Array) -> Moves:
    """The moves around the ray to `tokens`, (kinds,)."""
    kinds, total = len(tokens), 0.0
    for kind in range(kinds):
        total += tokens[kind]
    at_end, sides, width = np.empty(kinds), np.empty((2 * kinds, kinds)), np.empty(kinds)
    for kind in range(kinds):
        is_enough = tokens[kind] > FEWEST_SHARE * total
        at_end[kind] = RELATIVE_STEP * (tokens[kind] if is_enough else total)
        less = at_end[kind] if is_enough else 0.0
        width[kind] = at_end[kind] + less
        for other in range(kinds):
            sides[kind, other] = sides[kinds + kind, other] = tokens[other]
        sides[kind, kind] += at_end[kind]
        sides[kinds + kind, kind] -= less
    return Moves(at_end, sides, width)


def along_ray(tokens: Array) -> Search:
    """Slopes on the ray to `tokens`, at Gauss-Legendre nodes or, where these miss the cost, in finer cells.

    The weights of the nodes are the widths of their cells: each node lies in its own.

    References
    ----------
    .. [1] Szego, Orthogonal Polynomials, 1939, section 3.41 (the nodes separate the sums of the weights).
    """
    moves, cells = moves_of(tokens), _first_cells(len(tokens)).copy()
    _fill(cells, (yield _asked(cells, moves.sides, tokens)), moves.width)
    if abs(_residual(cells, tokens)) < RESIDUAL_SHARE:
        return Ray(cells)
    for _ in range(ROUNDS):
        finer = _finer(cells, tokens)
        if len(finer) == len(cells):
            break
        _fill(finer, (yield _asked(finer, moves.sides, tokens)), moves.width)
        cells = finer
    return Ray(cells)


def enough(tokens: Array) -> NDArray[np.bool_]:
    """Kinds of which there are so many tokens that the cost can be told from that of fewer."""
    return np.asarray(tokens > FEWEST_SHARE * tokens.sum())


@cache
def _first_cells(kinds: int) -> Array:
    """Cells around Gauss-Legendre nodes, nothing known of them but that nothing costs nothing."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    cells = np.full((NODES, _SLOPES + kinds), np.nan)
    cells[:, _END] = np.cumsum(weights / 2.0)
    cells[-1, _END] = 1.0
    cells[:, _START] = np.append(0.0, cells[:-1, _END])
    cells[:, _PLACE] = (nodes + 1.0) / 2.0
    cells[0, _LOW] = 0.0
    return cells


@compiled
def _asked(cells: Array, sides: Array, tokens: Array) -> Array:
    """The requests whose costs are not known: around places, and at the ends of cells. (points, kinds)"""
    points, at, kinds = np.empty((len(cells) * (len(sides) + 1), len(tokens))), 0, len(tokens)
    for cell in range(len(cells)):
        if np.isnan(cells[cell, _SLOPES]):
            for side in range(len(sides)):
                for kind in range(kinds):
                    points[at, kind] = cells[cell, _PLACE] * sides[side, kind]
                at += 1
        if np.isnan(cells[cell, _HIGH]):
            for kind in range(kinds):
                points[at, kind] = cells[cell, _END] * tokens[kind]
            at += 1
    return points[:at]


@compiled
def _fill(cells: Array, costs: Array, width: Array) -> None:
    """Write what the costs of `_asked` say."""
    kinds, at = len(width), 0
    for cell in range(len(cells)):
        if cell > 0:
            cells[cell, _LOW] = cells[cell - 1, _HIGH]
        if np.isnan(cells[cell, _SLOPES]):
            for kind in range(kinds):
                rise = costs[at + kind] - costs[at + kinds + kind]
                cells[cell, _SLOPES + kind] = rise / (cells[cell, _PLACE] * width[kind])
            at += 2 * kinds
        if np.isnan(cells[cell, _HIGH]):
            cells[cell, _HIGH] = costs[at]
            at += 1
        if not np.isnan(cells[cell, _GROWTH]):
            cells[cell, _GROWTH] = cells[cell, _HIGH] - cells[cell, _LOW]


@inlined
def _attributed(cells: Array, cell: int, tokens: Array) -> Any:
    """What the slopes of a cell say that the cost rises across it. [accelerator-second]"""
    slope = 0.0
    for kind in range(len(tokens)):
        slope += cells[cell, _SLOPES + kind] * tokens[kind]
    return (cells[cell, _END] - cells[cell, _START]) * slope


@compiled
def _residual(cells: Array, tokens: Array) -> Any:
    """How far all slopes together miss the cost. [1]"""
    attributed = 0.0
    for cell in range(len(cells)):
        attributed += _attributed(cells, cell, tokens)
    return attributed / cells[len(cells) - 1, _HIGH] - 1.0


@compiled
def _finer(cells: Array, tokens: Array) -> Array:
    """The cells, of which those whose slopes miss their growth are cut."""
    numbers = cells.shape[1]
    finer, at, cost = np.empty((len(cells) * PARTS, numbers)), 0, cells[len(cells) - 1, _HIGH]
    for cell in range(len(cells)):
        missed = abs(_attributed(cells, cell, tokens) - (cells[cell, _HIGH] - cells[cell, _LOW]))
        is_cut = missed > CELL_RESIDUAL_SHARE * cost
        for part in range(PARTS if is_cut else 1):
            for number in range(numbers):
                finer[at, number] = np.nan if is_cut else cells[cell, number]
            if is_cut:
                start, end = part / PARTS, (part + 1) / PARTS
                finer[at, _START] = cells[cell, _START] * (1.0 - start) + cells[cell, _END] * start
                finer[at, _END] = cells[cell, _START] * (1.0 - end) + cells[cell, _END] * end
                finer[at, _PLACE] = (finer[at, _START] + finer[at, _END]) / 2.0
                finer[at, _GROWTH] = 0.0
            at += 1
        if is_cut:
            finer[at - PARTS, _LOW], finer[at - 1, _HIGH] = cells[cell, _LOW], cells[cell, _HIGH]
    return finer[:at]


@compiled
def _prices(cells: Array, tokens: Array) -> Array:
    prices = np.zeros(len(tokens))
    for cell in range(len(cells)):
        attributed, scale = _attributed(cells, cell, tokens), cells[cell, _END] - cells[cell, _START]
        if attributed > 0 and cells[cell, _GROWTH] > 0:
            scale *= cells[cell, _GROWTH] / attributed
        for kind in range(len(tokens)):
            prices[kind] += scale * cells[cell, _SLOPES + kind]
    return prices


def make_ready() -> None:
    """Compile, or fetch what was compiled before, so that no request has to wait for it."""
    tokens, cells = np.ones(1), _first_cells(1).copy()
    moves = moves_of(tokens)
    points = _asked(cells, moves.sides, tokens)
    _fill(cells, points[:, 0].copy(), moves.width)
    _residual(cells, tokens)
    _prices(_finer(cells, tokens), tokens)
