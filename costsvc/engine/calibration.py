"""The fit: judgements to measured rates, robust, and held together by what is known of others alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.loads import Offered, serve
from costsvc.engine.memory import Lengths
from costsvc.engine.replica import Replica
from costsvc.engine.search import Array

Vector = NDArray[np.float64]

ROBUST_SCALE: Final = 0.1
DIFFERENCE_STEP: Final = 1e-3
MISSING_PENALTY: Final = 1.0
LONGEST_STEP: Final = 0.5
SHORTEST_STEP_SHARE: Final = 1 / 16
REWEIGHTINGS: Final = 8
SETTLED: Final = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class FitGroup:
    """Points of one layout: loads, what was measured (NaN where not), and weights. (1, points)"""

    lengths: Lengths
    offered: Offered
    output_tokens_per_s: Array
    ttft_s: Array
    tpot_s: Array
    weight: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class FitWeights:
    """How much a relative error of each measured quantity counts. [1]"""

    rate: float
    tpot: float
    ttft: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One group's layout once as it is and once for each parameter that moves it.

    The first axis of the calibration's arrays is: as it is, then each of `columns` a step further.
    """

    replica: Replica
    columns: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Parameters in logarithms, tied to a parent or a prior.

    `layouts(x)` gives each group's layout under parameters x, `moved(x, step)` the same with steps of each
    parameter. `upper` bounds x.
    """

    groups: Sequence[FitGroup]
    layouts: Callable[[Vector], Sequence[Replica]]
    moved: Callable[[Vector, float], Sequence[Moved]]
    start: Vector
    upper: Vector
    parent: NDArray[np.int64]
    prior: Vector
    deviation: Vector
    weights: FitWeights


def log_errors(group: FitGroup, replica: Replica) -> tuple[Array, Array, Array]:
    """ln(predicted / measured) of rate, TPOT and TTFT; NaN where nothing was measured. (1, points)"""
    served = serve(replica, group.lengths, group.offered)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = np.log(served.output_tokens_per_s / group.output_tokens_per_s)
        tpot = np.log(served.tpot_s / group.tpot_s)
        ttft = np.log(served.ttft_s / group.ttft_s)
    lost = np.isnan(served.sequences) & ~np.isnan(group.output_tokens_per_s)
    return np.where(lost, MISSING_PENALTY, rate), tpot, np.where(np.isfinite(ttft), ttft, np.nan)


def fit(problem: Problem, iterations: int, progress: Callable[[], None] = lambda: None) -> Vector:
    """Robust regularised least squares on the logarithms of measured over predicted, by Gauss and Newton's steps.

    Points may be wrong or of something that their table does not say, so far ones hardly pull (Cauchy's loss);
    ties are none of this, or a few odd points would carry a broad value far from all that rests on it. Each step
    solves the linear problem with weights that follow its residuals; it is halved until the loss falls.
    Deterministic: the same points give the same parameters. `progress` is called once an iteration.

    References
    ----------
    .. [1] Holland and Welsch, "Robust regression using iteratively reweighted least-squares," Communications in
       Statistics A6, 1977; Gelman et al., Bayesian Data Analysis, 3rd ed., chapter 5 (partial pooling towards a
       parent).
    """
    ties = _Ties.of(problem)
    x, loss = problem.start, np.inf
    for _ in range(iterations):
        progress()
        rows, slopes = _linear(problem, x)
        before = _loss(rows, ties.distances(x))
        step = np.clip(_reweighted(problem, ties, x, rows, slopes) - x, -LONGEST_STEP, LONGEST_STEP)
        share = 1.0
        while share >= SHORTEST_STEP_SHARE:
            loss = _loss(_rows(problem, x + share * step), ties.distances(x + share * step))
            if loss < before:
                x = x + share * step
                break
            share /= 2.0
        if not loss < before * (1.0 - SETTLED):
            break
    return x


@dataclass(frozen=True, slots=True)
class _Ties:
    """Distances of parameters from their parents, or from their priors, in deviations: `matrix @ x - offsets`."""

    matrix: Vector
    offsets: Vector

    @classmethod
    def of(cls, problem: Problem) -> "_Ties":
        each, tied = np.arange(len(problem.prior)), problem.parent >= 0
        matrix = np.diag(1.0 / problem.deviation)
        matrix[each[tied], problem.parent[tied]] -= 1.0 / problem.deviation[tied]
        return cls(matrix, np.where(tied, 0.0, problem.prior) / problem.deviation)

    def distances(self, x: Vector) -> Vector:
        return np.asarray(self.matrix @ x - self.offsets)


def _loss(rows: Vector, distances: Vector) -> float:
    """Cauchy's loss of points, plain squares of ties."""
    return float(np.sum(np.log1p(rows**2)) + np.sum(distances**2))


def _reweighted(problem: Problem, ties: _Ties, x: Vector, rows: Vector, slopes: Vector) -> Vector:
    """Where the loss of the problem as it is at x, made linear, is smallest."""
    tied, pulled = ties.matrix.T @ ties.matrix, ties.matrix.T @ ties.offsets
    near = x
    for _ in range(REWEIGHTINGS):
        weighted = slopes.T / (1.0 + (rows + slopes @ (near - x)) ** 2)
        found = _bounded(weighted @ slopes + tied, weighted @ (slopes @ x - rows) + pulled, problem.upper)
        moved, near = np.max(np.abs(found - near)), found
        if moved < SETTLED:
            break
    return near


def _bounded(normal: Vector, target: Vector, upper: Vector) -> Vector:
    """Solve normal equations; those that would pass their bound lie on it, and the others make the best of it."""
    found, free = upper.copy(), np.ones(len(upper), dtype=bool)
    while free.any():
        held = ~free
        rest = target[free] - normal[np.ix_(free, held)] @ upper[held]
        found[free] = np.linalg.solve(normal[np.ix_(free, free)], rest)
        beyond = free & (found > upper)
        if not beyond.any():
            break
        found[beyond], free = upper[beyond], free & ~beyond
    return found


def _rows(problem: Problem, x: Vector) -> Vector:
    """Weighted errors of all points under x, in units of the robust scale."""
    pairs = zip(problem.groups, problem.layouts(x), strict=True)
    return np.concatenate([_residuals(problem, group, replica)[0] for group, replica in pairs])


def _linear(problem: Problem, x: Vector) -> tuple[Vector, Vector]:
    """The same, and their slopes by each parameter."""
    errors, slopes = [], []
    for group, moved in zip(problem.groups, problem.moved(x, -DIFFERENCE_STEP), strict=True):
        rows = _residuals(problem, group, moved.replica)
        wide = np.zeros((rows.shape[1], len(x)))
        wide[:, moved.columns] = ((rows[1:] - rows[0]) / -DIFFERENCE_STEP).T
        errors.append(rows[0])
        slopes.append(wide)
    return np.concatenate(errors), np.concatenate(slopes)


def _residuals(problem: Problem, group: FitGroup, replica: Replica) -> Vector:
    """Weighted log errors of a group, in units of the robust scale. (rows of the calibration, 3 x points)"""
    weights = problem.weights
    parts = zip(log_errors(group, replica), (weights.rate, weights.tpot, weights.ttft), strict=True)
    rows = [np.nan_to_num(error) * weight * group.weight for error, weight in parts]
    return np.concatenate(rows, axis=1) / ROBUST_SCALE
