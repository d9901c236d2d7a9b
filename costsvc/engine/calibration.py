"""The fit: judgements to measured rates, robust, and held together by what is known of others alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from costsvc.engine.formulas import Array
from costsvc.engine.loads import Offered, serve
from costsvc.engine.memory import Lengths
from costsvc.engine.replica import Replica

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
    """Robust regularised least squares on the logarithms of measured over predicted.

    Points may be wrong or of something that their table does not say, so far ones hardly pull (Cauchy's loss);
    ties are none of this, or a few odd points would carry a broad value far from all that rests on it.
    Deterministic: the same points give the same parameters. `progress` is called once an iteration.

    References
    ----------
    .. [1] Triggs et al., "Bundle adjustment," 2000, section 4.3 (robust losses); Gelman et al., Bayesian Data
       Analysis, 3rd ed., chapter 5 (partial pooling towards a parent).
    """

    def residuals(x: Vector) -> Vector:
        data = [
            _residuals(problem, group, replica)[0]
            for group, replica in zip(problem.groups, problem.layouts(x), strict=True)
        ]
        return np.concatenate([*data, _ties(problem, x)])

    def jacobian(x: Vector) -> Vector:
        progress()
        tied = _tie_slopes(problem)
        data = []
        for group, moved in zip(problem.groups, problem.moved(x, -DIFFERENCE_STEP), strict=True):
            rows = _residuals(problem, group, moved.replica)
            slopes = np.zeros((rows.shape[1], len(x)))
            slopes[:, moved.columns] = ((rows[1:] - rows[0]) / -DIFFERENCE_STEP).T
            data.append(slopes)
        return np.concatenate([*data, tied])

    def loss(z: Vector) -> Vector:
        return _loss(z, len(problem.prior))

    solution = least_squares(
        residuals,
        problem.start,
        jac=jacobian,
        bounds=(-np.inf, problem.upper),
        loss=cast("Any", loss),
        f_scale=ROBUST_SCALE,
        max_nfev=iterations,
        x_scale="jac",
    )
    return np.asarray(solution.x)


def _loss(squares: Vector, ties: int) -> Vector:
    """Loss of squared residuals and its first two derivatives: Cauchy's of points, plain of the last `ties`."""
    found = np.stack([squares, np.ones_like(squares), np.zeros_like(squares)])
    rise = 1.0 + squares[:-ties]
    found[:, :-ties] = np.log(rise), 1.0 / rise, -1.0 / rise**2
    return found


def _residuals(problem: Problem, group: FitGroup, replica: Replica) -> Vector:
    """Weighted log errors of a group. (rows of the calibration, 3 x points)"""
    weights = problem.weights
    parts = zip(log_errors(group, replica), (weights.rate, weights.tpot, weights.ttft), strict=True)
    return np.concatenate([np.nan_to_num(error) * weight * group.weight for error, weight in parts], axis=1)


def _ties(problem: Problem, x: Vector) -> Vector:
    """Distance of each parameter from its parent, or from its prior, in deviations."""
    centre = np.where(problem.parent >= 0, x[problem.parent], problem.prior)
    return np.asarray(ROBUST_SCALE * (x - centre) / problem.deviation)


def _tie_slopes(problem: Problem) -> Vector:
    each = np.arange(len(problem.prior))
    slopes = np.diag(ROBUST_SCALE / problem.deviation)
    tied = problem.parent >= 0
    slopes[each[tied], problem.parent[tied]] -= ROBUST_SCALE / problem.deviation[tied]
    return np.asarray(slopes)
