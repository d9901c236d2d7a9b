"""Medians and tails of latency, where the loop itself gives means."""

from dataclasses import replace
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.formulas import prompt_load_share
from costsvc.engine.loop import run_loop, step_token_limit, ttft_unloaded_s
from costsvc.engine.memory import Lengths
from costsvc.engine.replica import Replica
from costsvc.engine.serving import SteadyState
from costsvc.engine.speculation import deviation_tokens

_LENGTHS: Final = 64
_BISECTIONS: Final = 60
_TAIL: Final = 40.0


def ttft_quantiles_s(
    replica: Replica,
    lengths: Lengths,
    state: SteadyState,
    utilization_share: float,
    quantiles: tuple[float, ...],
) -> tuple[float, ...]:
    r"""Quantiles of the time to the first token, over prompt lengths and over waiting. [s]

    A prompt's own time is the loop's, scaled as prefill of its length is; lengths are log-normal with the
    given variation. Waiting is zero with probability :math:`1-\rho` and else exponential, with the loop's
    mean wait: :math:`P(W > t) = \rho e^{-\rho t / \bar W}`.

    References
    ----------
    .. [1] Kingman, "The single server queue in heavy traffic," Proc. Camb. Phil. Soc. 57, 1961: the tail.
    """
    quiet_s = _first(run_loop(replica, lengths, state.sequences, 0.0).ttft_s)
    wait_s = max(_first(state.loop.ttft_s) - quiet_s, 0.0)
    own_s = quiet_s * _relative_prefill(replica, lengths)
    split = replica.deployments[0].mode == "disaggregated"
    busy = utilization_share if split else _busy_share(replica, state, utilization_share)
    return tuple(_quantile(own_s, wait_s, busy, quantile) for quantile in quantiles)


def tpot_quantiles_s(
    replica: Replica, lengths: Lengths, state: SteadyState, quantiles: tuple[float, ...]
) -> tuple[float, ...]:
    r"""Quantiles over requests of their mean time per output token. [s]

    Of a request's O steps a binomial number carries somebody's prompt and takes longer, so its mean is
    about normal with deviation :math:`(T_{mix} - T_{dec}) \sqrt{f (1 - f) / O}`. With steps that yield E
    tokens on average, :math:`O / E` steps are as many as renewals of that mean and their own deviation
    :math:`\sigma_E` need, which adds :math:`T / E \cdot \sigma_E / \sqrt{E O}`.
    """
    loop = state.loop
    share, output = _first(loop.mixed_share), max(_first(lengths.output), 1.0)
    apart_s = _first(loop.mixed_step_s) - _first(loop.decode_step_s) if share > 0 else 0.0
    steps = output / replica.tokens_per_step
    deviation_s = apart_s * float(np.sqrt(share * (1.0 - share) / steps)) / replica.tokens_per_step
    fastest_s = min(_first(loop.decode_step_s) / replica.verified_tokens, _first(loop.step_s))
    if replica.speculation is not None:
        acceptance, tokens = replica.speculation.acceptance_share, replica.speculation.draft_tokens
        spread = deviation_tokens(acceptance, tokens) / float(np.sqrt(replica.tokens_per_step * output))
        deviation_s = float(np.hypot(deviation_s, _first(loop.step_s) * spread))
    normal = NormalDist(_first(loop.step_s), max(deviation_s, 1e-15))
    return tuple(max(normal.inv_cdf(quantile), fastest_s) for quantile in quantiles)


def _busy_share(replica: Replica, state: SteadyState, utilization_share: float) -> float:
    loop = state.loop
    room = np.maximum(step_token_limit(replica) - state.sequences * replica.verified_tokens, 1.0)
    arriving, step_s = loop.mixed_share * loop.mixed_prefill, loop.step_s * replica.tokens_per_step
    return _first(prompt_load_share(utilization_share, arriving, room, loop.mixed_step_s, step_s))


def _relative_prefill(replica: Replica, lengths: Lengths) -> NDArray[np.float64]:
    """Time of prompts of log-normal length over the mean of these times, at equally likely lengths. [1]"""
    if not lengths.input_cv:
        return np.ones(1)
    spread = float(np.sqrt(np.log1p(lengths.input_cv**2)))
    places = (np.arange(_LENGTHS) + 0.5) / _LENGTHS
    normal = np.asarray([NormalDist().inv_cdf(place) for place in places])
    longer = np.exp(spread * normal - spread**2 / 2)
    longest = np.maximum(lengths.context_limit - lengths.output, lengths.prompt)
    longer = np.minimum(longer, longest / lengths.prompt)
    many = replace(lengths, uncached=longer * lengths.uncached, cached=longer * lengths.cached, input_cv=0.0)
    alone_s = np.asarray(ttft_unloaded_s(replica, many))[0]
    return np.asarray(alone_s / alone_s.mean())


def _quantile(own_s: NDArray[np.float64], wait_s: float, busy_share: float, quantile: float) -> float:
    """Where own time plus waiting has gathered the share `quantile`."""
    rate = busy_share / wait_s if wait_s > 0 and busy_share > 0 else np.inf
    low, high = float(own_s.min()), float(own_s.max()) + (_TAIL / rate if np.isfinite(rate) else 0.0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        left = middle - own_s
        waited = 1.0 - busy_share * np.exp(-rate * np.maximum(left, 0.0)) if np.isfinite(rate) else 1.0
        gathered = float(np.mean(np.where(left >= 0, waited, 0.0)))
        low, high = (low, middle) if gathered >= quantile else (middle, high)
    return high


def _first(value: object) -> float:
    return float(np.ravel(np.asarray(value, dtype=np.float64))[0])
