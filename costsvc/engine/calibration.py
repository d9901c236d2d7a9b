"""The fit: judgements to measured rates, robust, and held together by what is known of others alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from costsvc.engine.loads import Offered, serve
from costsvc.engine.memory import Lengths
from costsvc.engine.replica import Replica
from costsvc.engine.serving import Array

Vector = NDArray[np.float64]

ROBUST_SCALE: Final = 0.1
DIFFERENCE_STEP: Final = 1e-3
MISSING_PENALTY: Final = 1.0


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
class Problem:
    """Parameters in logarithms, tied to a parent or a prior, and the groups that each one moves.

    `replicas(x, groups)` gives the layouts of the named groups under parameters x.
    """

    groups: Sequence[FitGroup]
    replicas: Callable[[Vector, Sequence[int]], Sequence[Replica]]
    start: Vector
    upper: Vector
    parent: NDArray[np.int64]
    prior: Vector
    deviation: Vector
    moves: Sequence[Sequence[int]]
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
    """Robust regularised least squares on the logarithms of measured over predicted.

    Deterministic: the same points give the same parameters. `progress` is called once an evaluation.

    References
    ----------
    .. [1] Triggs et al., "Bundle adjustment," 2000, section 4.3 (soft-L1 loss); Gelman et al., Bayesian Data
       Analysis, 3rd ed., chapter 5 (partial pooling towards a parent).
    """
    every = range(len(problem.groups))

    def residuals(x: Vector) -> Vector:
        progress()
        return np.concatenate([_data(problem, x, every), _ties(problem, x)])

    def jacobian(x: Vector) -> Vector:
        sizes = [_rows(group) for group in problem.groups]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        matrix = np.zeros((starts[-1] + len(x), len(x)))
        base = [_data(problem, x, [index]) for index in every]
        for column, moved in enumerate(problem.moves):
            step = np.zeros_like(x)
            step[column] = (
                -DIFFERENCE_STEP if x[column] + DIFFERENCE_STEP > problem.upper[column] else DIFFERENCE_STEP
            )
            progress()
            for index, replica in zip(moved, problem.replicas(x + step, moved), strict=True):
                change = _group_residuals(problem, index, replica) - base[index]
                matrix[starts[index] : starts[index + 1], column] = change / step[column]
        tie = ROBUST_SCALE / problem.deviation
        rows = starts[-1] + np.arange(len(x))
        matrix[rows, np.arange(len(x))] = tie
        tied = problem.parent >= 0
        matrix[rows[tied], problem.parent[tied]] -= tie[tied]
        return matrix

    solution = least_squares(
        residuals,
        problem.start,
        jac=jacobian,
        bounds=(-np.inf, problem.upper),
        loss="soft_l1",
        f_scale=ROBUST_SCALE,
        max_nfev=iterations,
        x_scale="jac",
    )
    return np.asarray(solution.x)


def _data(problem: Problem, x: Vector, groups: Sequence[int]) -> Vector:
    replicas = problem.replicas(x, groups)
    return np.concatenate(
        [_group_residuals(problem, index, replica) for index, replica in zip(groups, replicas, strict=True)]
    )


def _group_residuals(problem: Problem, index: int, replica: Replica) -> Vector:
    group = problem.groups[index]
    rate, tpot, ttft = log_errors(group, replica)
    weights = problem.weights
    parts = ((rate, weights.rate), (tpot, weights.tpot), (ttft, weights.ttft))
    stacked = np.concatenate([np.nan_to_num(error) * weight * group.weight for error, weight in parts])
    return np.asarray(stacked.ravel())


def _rows(group: FitGroup) -> int:
    return 3 * group.weight.size


def _ties(problem: Problem, x: Vector) -> Vector:
    """Distance of each parameter from its parent, or from its prior, in deviations."""
    centre = np.where(problem.parent >= 0, x[problem.parent], problem.prior)
    return np.asarray(ROBUST_SCALE * (x - centre) / problem.deviation)
