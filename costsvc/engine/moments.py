"""Length distributions to what the engine needs of them: means, spreads, and how the two go together."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthMoments:
    """Two lengths by their first two moments and their correlation. [token], [1]"""

    input_tokens: float
    output_tokens: float
    input_cv: float
    output_cv: float
    length_correlation: float


def quantile_moments(shares: Array, tokens: Array) -> tuple[float, float]:
    r"""Mean and coefficient of variation of a length known by quantiles.

    Between two quantiles lengths are log-uniform, :math:`x(p) = x_0 (x_1/x_0)^{(p-p_0)/(p_1-p_0)}`, so that
    :math:`\int x \, dp = \Delta p \, (x_1 - x_0) / \ln(x_1/x_0)`; below the first and above the last they are
    as those.

    Parameters
    ----------
    shares, tokens : array
        Rising shares of requests, in [0, 1], and the lengths they do not exceed. [1], [token]

    Returns
    -------
    tuple of float
        [token], [1]

    Examples
    --------
    >>> mean, cv = quantile_moments(np.asarray([0.5]), np.asarray([100.0]))
    >>> mean, cv
    (100.0, 0.0)
    """
    edges = np.concatenate([[0.0], shares, [1.0]])
    lengths = np.concatenate([tokens[:1], tokens, tokens[-1:]])
    width, low, high = np.diff(edges), lengths[:-1], lengths[1:]
    first = float(width @ _log_mean(low, high))
    second = float(width @ _log_mean(low**2, high**2))
    return first, float(np.sqrt(max(second / first**2 - 1.0, 0.0)))


def sample_moments(input_tokens: Array, output_tokens: Array, weights: Array) -> LengthMoments:
    """Moments of weighted pairs: the bins of a histogram, or the requests of a trace.

    Examples
    --------
    >>> pairs = sample_moments(np.asarray([1.0, 3.0]), np.asarray([2.0, 6.0]), np.ones(2))
    >>> pairs.input_tokens, pairs.output_tokens, pairs.input_cv, round(pairs.length_correlation, 9)
    (2.0, 4.0, 0.5, 1.0)
    """
    weights = weights / weights.sum()
    mean_in, mean_out = float(weights @ input_tokens), float(weights @ output_tokens)
    off_in, off_out = input_tokens - mean_in, output_tokens - mean_out
    spread_in, spread_out = float(np.sqrt(weights @ off_in**2)), float(np.sqrt(weights @ off_out**2))
    together = float(weights @ (off_in * off_out))
    return LengthMoments(
        input_tokens=mean_in,
        output_tokens=mean_out,
        input_cv=spread_in / mean_in,
        output_cv=spread_out / mean_out,
        length_correlation=together / (spread_in * spread_out) if spread_in and spread_out else 0.0,
    )


def _log_mean(low: Array, high: Array) -> Array:
    """Logarithmic mean of pairs; of equal ones, they themselves."""
    ratio = np.log(high / low)
    return np.where(ratio == 0, low, (high - low) / np.where(ratio == 0, 1.0, ratio))
