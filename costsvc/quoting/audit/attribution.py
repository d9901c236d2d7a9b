"""The marginal attribution as a table: cells of the ray, and prices as formulas over the costs in them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from costsvc.engine.ray import FEWEST_SHARE, RELATIVE_STEP, Ray, moves_of
from costsvc.engine.ray import enough as have_enough
from costsvc.quoting.audit.points import Point

AXES: Final = ("uncached", "cached", "output")
TOKENS: Final = ("uncached_input_tokens", "cached_input_tokens", "output_tokens")
Tokens = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Cell:
    """A part of the ray, and the place in it where slopes are taken. [1]

    One that was cut from another is scaled to how much the cost grows across it.
    """

    start: float
    end: float
    place: float
    is_scaled: bool


def cells_of(ray: Ray) -> list[Cell]:
    """The cells of a ray from its start to its end."""
    columns = ray.start_shares, ray.end_shares, ray.place_shares, ~np.isnan(ray.growth_gpu_s)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Cell(*row) for row in sorted(rows)]


def enough_text(axis: int) -> str:
    """Whether an axis has enough tokens for a difference, as a condition."""
    return f"{TOKENS[axis]}>{FEWEST_SHARE!r}*({'+'.join(TOKENS)})"


def enough(tokens: Tokens, axis: int) -> bool:
    """The same as a truth."""
    return bool(have_enough(np.asarray(tokens))[axis])


def moved_text(axis: int) -> str:
    """How far an axis is moved at the end of the ray; one with hardly any tokens by a share of all. [token]"""
    return f"{RELATIVE_STEP!r}*IF({enough_text(axis)},{TOKENS[axis]},{'+'.join(TOKENS)})"


def moved(tokens: Tokens, axis: int) -> float:
    """The same as a number. [token]"""
    return float(moves_of(np.asarray(tokens)).at_end[axis])


def label_of(place: float, axis: int, up: bool) -> str:
    """The name of a point beside a place."""
    return f"at {place!r} {AXES[axis]} {'up' if up else 'down'}"


def edge_label(edge: float) -> str:
    """The name of a point on the ray."""
    return f"at {edge!r}"


def ray_points(cells: Sequence[Cell], tokens: Tokens, context_tokens: float) -> list[Point]:
    """All points that the cells' prices are made of: beside each place, and at the edges of scaled cells."""
    edges = {edge for cell in cells if cell.is_scaled for edge in (cell.start, cell.end) if edge}
    return [
        *_beside((cell.place for cell in cells), tokens, context_tokens),
        *(_point(edge_label(edge), edge, (), tokens, context_tokens) for edge in sorted(edges)),
    ]


def _beside(places: Iterable[float], tokens: Tokens, context_tokens: float) -> Iterator[Point]:
    """Each axis a little up, and a little down where it has enough tokens."""
    for place, axis, up in product(places, range(len(AXES)), (True, False)):
        sign = "+" if up else "-"
        move = f"moved_{AXES[axis]}" if up else f"IF({enough_text(axis)},moved_{AXES[axis]},0)"
        change = moved(tokens, axis) * (1.0 if up else -float(enough(tokens, axis)))
        change_of = (axis, f"{sign}{move}", change)
        yield _point(label_of(place, axis, up), place, change_of, tokens, context_tokens)


def _point(
    label: str,
    place: float,
    change: tuple[()] | tuple[int, str, float],
    tokens: Tokens,
    context_tokens: float,
) -> Point:
    """A share of the request, one axis of it changed before the share is taken."""
    texts, values = list(TOKENS), list(tokens)
    if change:
        axis, text, value = change
        texts[axis] = f"({texts[axis]}{text})"
        values[axis] += value
    uncached, cached, output = (f"{place!r}*{text}" for text in texts)
    counts = place * values[0], place * values[1], place * values[2]
    formulas = ("context_tokens", uncached, cached, output, TOKENS[0])
    return Point(label, formulas, (context_tokens, *counts, tokens[0]))
