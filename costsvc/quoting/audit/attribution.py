"""The marginal attribution as a table: points along the ray, and prices as formulas over their costs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from costsvc.engine.pricing import (
    CELLS,
    NEARLY_NOTHING,
    NODES,
    RELATIVE_STEP,
    RESIDUAL_SHARE,
    SHAPLEY_WEIGHTS,
)
from costsvc.quoting.audit.points import Point

AXES: Final = ("uncached", "cached", "output")
TOKENS: Final = ("uncached_input_tokens", "cached_input_tokens", "output_tokens")
Tokens = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Node:
    """A place on the ray, and its weight. [1]"""

    place: float
    weight: float


def nodes_of(count: int) -> list[Node]:
    """Gauss-Legendre nodes on [0, 1]."""
    places, weights = np.polynomial.legendre.leggauss(count)
    return [Node(float(p), float(w)) for p, w in zip((places + 1.0) / 2.0, weights / 2.0, strict=True)]


def moved_text(axis: int) -> str:
    """How far an axis is moved at the end of the ray; an axis without tokens by a share of all. [token]"""
    name, every = TOKENS[axis], "+".join(TOKENS)
    return f"{RELATIVE_STEP!r}*IF({name}>0,{name},{every})"


def moved(tokens: Tokens, axis: int) -> float:
    """The same as a number. [token]"""
    return RELATIVE_STEP * (tokens[axis] if tokens[axis] > 0 else sum(tokens))


def label_of(node: int, axis: int, up: bool) -> str:
    """The name of a point of a node."""
    return f"node {node + 1} {AXES[axis]} {'up' if up else 'down'}"


def node_points(
    nodes: Sequence[Node], tokens: Tokens, context_tokens: float, axes: Sequence[int]
) -> list[Point]:
    """Points of a ray: each axis a little up, and a little down where it has tokens."""
    points = []
    for (index, node), axis, up in product(enumerate(nodes), axes, (True, False)):
        texts = [f"{node.place!r}*{name}" for name in TOKENS]
        values = [node.place * count for count in tokens]
        if up:
            texts[axis] = f"{node.place!r}*({TOKENS[axis]}+moved_{AXES[axis]})"
            values[axis] += node.place * moved(tokens, axis)
        else:
            texts[axis] = f"{node.place!r}*({TOKENS[axis]}-IF({TOKENS[axis]}>0,moved_{AXES[axis]},0))"
            values[axis] -= node.place * moved(tokens, axis) * (tokens[axis] > 0)
        points.append(_point(label_of(index, axis, up), texts, values, tokens, context_tokens))
    return points


def corner_of(cell: int, corner: tuple[int, ...]) -> str:
    """The name of a point of a cell."""
    return f"cell {cell + 1} corner {''.join(map(str, corner))}"


def cell_points(tokens: Tokens, context_tokens: float) -> list[Point]:
    """Corners of the cells that the ray is cut into."""
    edges = cell_edges()
    points = []
    for cell in range(CELLS):
        for corner in product((0, 1), repeat=len(AXES)):
            places = [edges[cell + side] for side in corner]
            texts = [f"{place!r}*{name}" for place, name in zip(places, TOKENS, strict=True)]
            values = [place * count for place, count in zip(places, tokens, strict=True)]
            points.append(_point(corner_of(cell, corner), texts, values, tokens, context_tokens))
    return points


def cell_edges() -> list[float]:
    """Where the ray is cut. [1]"""
    edges = [float(edge) for edge in np.linspace(0.0, 1.0, CELLS + 1)]
    edges[0] = NEARLY_NOTHING
    return edges


def cell_bill(costs: Mapping[tuple[int, ...], str], axis: int) -> str:
    """One cell's bill of one axis, the Shapley value of its growth, over references to its corners' costs."""
    return "+".join(f"({costs[high]}-{costs[low]})*{weight!r}" for weight, low, high in _edges(axis))


def cell_cost(costs: Mapping[tuple[int, ...], float], axis: int) -> float:
    """The same as a number. [accelerator-second]"""
    return sum((costs[high] - costs[low]) * weight for weight, low, high in _edges(axis))


def _edges(axis: int) -> Iterator[tuple[float, tuple[int, ...], tuple[int, ...]]]:
    """The four edges of a cell along an axis, each with its weight and its two corners."""
    others = [side for side in range(len(AXES)) if side != axis]
    for weight, grown in zip(SHAPLEY_WEIGHTS, product((0, 1), repeat=2), strict=True):
        corner = dict(zip(others, grown, strict=True))
        low, high = (tuple(corner.get(side, end) for side in range(len(AXES))) for end in (0, 1))
        yield weight, low, high


def used_nodes(residuals: Sequence[float]) -> int | None:
    """How many nodes were enough; None where none were and the ray was cut into cells."""
    enough = (
        count for count, residual in zip(NODES, residuals, strict=False) if abs(residual) < RESIDUAL_SHARE
    )
    return next(enough, None)


def _point(
    label: str, texts: Sequence[str], values: Sequence[float], tokens: Tokens, context_tokens: float
) -> Point:
    formulas = ("context_tokens", texts[0], texts[1], texts[2], TOKENS[0])
    return Point(label, formulas, (context_tokens, values[0], values[1], values[2], tokens[0]))
