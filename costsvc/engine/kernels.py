"""Shares of peak that single kernels reach, from tables of measured kernels: where the end-to-end fit begins."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

Vector = NDArray[np.float64]

ROBUST_SCALE: Final = 0.1
FLOOR_START_S: Final = 5e-6
LEAST_ROWS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFit:
    """Parameters in the order of the form's arguments, with the median relative error of its rows. [1]"""

    values: tuple[float, ...]
    scatter_ratio: float
    rows: int


def fit_matrices(
    ideal_compute_s: Vector, ideal_memory_s: Vector, tokens: Vector, seconds: Vector
) -> KernelFit:
    r"""Matrix products: :math:`t = \sqrt{(t_c (1 + m_{1/2}/m) / \eta_c)^2 + (t_m / \eta_m)^2} + t_0`.

    Parameters
    ----------
    ideal_compute_s, ideal_memory_s : array
        Times at the full peaks. [s]
    tokens : array
        Rows, or tokens per expert. [token]

    Returns
    -------
    KernelFit
        :math:`\eta_c` [1], :math:`\eta_m` [1], :math:`m_{1/2}` [token], :math:`t_0` [s]
    """

    def form(x: Vector) -> Vector:
        compute = ideal_compute_s / x[0] * (1.0 + x[2] / tokens)
        return np.asarray(np.hypot(compute, ideal_memory_s / x[1]) + x[3])

    return _fit(form, np.asarray([0.6, 0.8, 40.0, FLOOR_START_S]), seconds, at_most=(1.0, 1.0, 2000.0, 1e-3))


def fit_decode_attention(ideal_memory_s: Vector, seconds: Vector) -> KernelFit:
    r"""Decode attention: :math:`t = t_m / \eta_m + t_0`. Returns :math:`\eta_m` [1] and :math:`t_0` [s]."""

    def form(x: Vector) -> Vector:
        return np.asarray(ideal_memory_s / x[0] + x[1])

    return _fit(form, np.asarray([0.8, FLOOR_START_S]), seconds, at_most=(1.0, 1e-3))


def fit_prefill_attention(mfu_share: Vector, visible_tokens: Vector) -> KernelFit:
    r"""Prefill attention: share of peak :math:`\eta v / (v + v_{1/2})`.

    Returns :math:`\eta` [1] and :math:`v_{1/2}` [token].
    """

    def form(x: Vector) -> Vector:
        return np.asarray(x[0] * visible_tokens / (visible_tokens + x[1]))

    return _fit(form, np.asarray([0.7, 1000.0]), mfu_share, at_most=(1.0, 1e5))


def fit_all_reduce(ideal_transfer_s: Vector, seconds: Vector) -> KernelFit:
    r"""All-reduce: :math:`t = \alpha + t_\beta / \eta`. Returns :math:`\eta` [1] and :math:`\alpha` [s]."""
    return fit_decode_attention(ideal_transfer_s, seconds)


def _fit(
    form: Callable[[Vector], Vector], start: Vector, measured: Vector, at_most: tuple[float, ...]
) -> KernelFit:
    """Robust least squares on the logarithm of formula over measurement."""

    def residuals(x: Vector) -> Vector:
        return np.asarray(np.log(form(np.exp(x)) / measured))

    solution = least_squares(
        residuals,
        np.log(start),
        bounds=(-np.inf, np.log(np.asarray(at_most))),
        loss="soft_l1",
        f_scale=ROBUST_SCALE,
    )
    errors = np.abs(np.expm1(residuals(solution.x)))
    return KernelFit(
        values=tuple(float(value) for value in np.exp(solution.x)),
        scatter_ratio=float(np.median(errors)),
        rows=len(measured),
    )
