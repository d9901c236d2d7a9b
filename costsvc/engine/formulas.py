"""The formulas of the serving loop: written once, and compiled for the search over concurrency.

The first half are formulas, elementwise on numbers, arrays, or whatever else computes like them: the audit
workbook runs them on its cells. The search asks them of single numbers millions of times, where the call of a
NumPy function costs a hundred times its arithmetic; the second half runs them as machine code.

All that is compiled stands in this file, so that the compiler's cache sees a change here.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])

ROOT_STEPS: Final = 60
ROOT_TOLERANCE: Final = 1e-12
NEIGHBOURHOOD: Final = 0.003


def roof_s(compute_s: Any, memory_s: Any) -> Any:
    r"""Time under two roofs, :math:`\sqrt{t_c^2 + t_m^2}`: never below either, 1.41 times both where they meet.

    References
    ----------
    .. [1] Williams, Waterman and Patterson, "Roofline," CACM 52(4), 2009, for the two roofs; the smooth corner
       is fitted to the measured matrix products of `docs/accuracy.md`.

    Examples
    --------
    >>> float(roof_s(3.0, 4.0))
    5.0
    """
    return np.hypot(compute_s, memory_s)


def rows_s(rows: Any, row_s: Any, memory_s: Any, half_rows: Any) -> Any:
    r"""An operator on rows of tokens, :math:`\sqrt{((m + m_{1/2}) t_{row})^2 + t_m^2}`; no rows cost nothing. [s]"""
    return (rows > 0) * np.hypot((rows + half_rows) * row_s, memory_s)


def units_s(units: Any, once_s: Any, unit_s: Any) -> Any:
    """An operator whose time rises straight with its work; no work costs nothing. [s]"""
    return (units > 0) * (once_s + units * unit_s)


def launched_s(kernels_s: Any, prefill: Any, launches_s: Any, captured_tokens: Any) -> Any:
    """Kernels, under the roof of what the host launches where prompts are more than a captured graph holds. [s]"""
    return np.hypot(kernels_s, np.minimum(prefill / captured_tokens, 1.0) * launches_s)


def touched_experts(tokens: Any, experts: Any, log_miss_share: Any, evenness: Any) -> Any:
    r"""Expected experts that a batch touches, :math:`E (1 - (1 + m ((1 - k/E)^{-1/\kappa} - 1))^{-\kappa})`. [experts]

    Experts are not equally sought: their popularity is spread like a gamma variate of shape :math:`\kappa`, which
    turns the exponential of uniform routing, :math:`E (1 - (1 - k/E)^m)`, into that power. One token touches k.

    Parameters
    ----------
    log_miss_share : float
        :math:`\ln(1 - k/E)`.
    evenness : float
        :math:`\kappa`; the larger, the more even. Finite. [1]

    References
    ----------
    .. [1] Occupancy of E cells by m draws of k without replacement; Feller, An Introduction to Probability
       Theory, vol. 1, 3rd ed., section IV.2.
    """
    grown = np.log1p(tokens * np.expm1(-log_miss_share / evenness))
    return -experts * np.expm1(-evenness * grown)


def tokens_each(tokens: Any, experts_per_token: Any, touched: Any) -> Any:
    """Tokens that each touched expert sees. [token]"""
    return tokens * experts_per_token / np.maximum(touched, 1.0)


def mixed_prefill_tokens(arriving: Any, uncached: Any, room: Any, dp: Any) -> Any:
    """Prompt tokens of a step that has some: what a rank takes of a prompt, or all that arrive, in the room. [token]"""
    return np.minimum(np.maximum(arriving, np.minimum(uncached, room / dp)), room)


def busiest_prefill(prefill: Any, rank_share: Any, dp: Any, prompt: Any) -> Any:
    """Prompt tokens of the rank that has most: a prompt lies whole on one, and the step waits for it. [token]"""
    return np.maximum(prefill * rank_share, np.minimum(prefill, prompt) * (rank_share * dp))


def prompt_load_share(utilization_share: Any, arriving: Any, room: Any, mixed_s: Any, step_s: Any) -> Any:
    """How busy arriving prompts keep the steps: their part of the room, in the time of steps with prompts. [1]"""
    return utilization_share * arriving / room * mixed_s / step_s


def queue_factor(load_share: Any, sequences: Any) -> Any:
    r"""Mean wait of a prompt in service times: M/D/1, :math:`\rho / 2(1 - \rho)`, at most half the loop. [1]

    References
    ----------
    .. [1] Kleinrock, Queueing Systems, vol. 1, 1975, eq. 5.63 (Pollaczek-Khinchin, constant service).
    """
    idle = np.maximum(1.0 - load_share, 1e-9)
    return np.minimum(load_share / (2.0 * idle), sequences / 2.0)


def compiled(function: Function) -> Function:
    """The function as machine code, made at its first call and kept beside its source, or in the user's cache.

    Where neither can be written, each process makes it anew: NUMBA_CACHE_DIR names another place.
    """
    try:
        return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:
        return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))


_rows_s, _units_s, _queue_factor = compiled(rows_s), compiled(units_s), compiled(queue_factor)
_touched_experts, _tokens_each = compiled(touched_experts), compiled(tokens_each)
_mixed_prefill_tokens, _launched_s = compiled(mixed_prefill_tokens), compiled(launched_s)
_busiest_prefill, _prompt_load_share = compiled(busiest_prefill), compiled(prompt_load_share)


class Coefficients(NamedTuple):
    """What one step of a loop costs per unit of its work. Last axes are (layouts, points).

    `roofs` are row_s, memory_s and half_rows of each operator: those that all tokens pass, the head, then
    prefill attention. `experts` are, of each kind of block, number, experts per token, ln of the missed share,
    the roof of one, the skew of the busiest rank and the evenness. `steps` and `loop` are in the order of
    `STEPS` and `LOOP`. Those of the network that proposes tokens follow; without one it passes 0 times.
    """

    token_roofs: int
    roofs: Array
    experts: Array
    steps: Array
    loop: Array
    keeps_cache: bool
    is_split: bool
    draft_passes: float
    draft_token_roofs: int
    draft_roofs: Array
    draft_experts: Array
    draft_steps: Array


STEPS: Final = (
    "rank_share",
    "dp",
    "decode_once_s",
    "decode_sequence_s",
    "communication_once_s",
    "communication_token_s",
    "layer_overhead_s",
    "step_overhead_s",
    "sampled_s",
    "prompt_s",
    "verified_tokens",
    "tokens_per_step",
    "launches_s",
    "captured_tokens",
    "prompt_tokens",
)
HOST_STEPS: Final = [STEPS.index(name) for name in ("step_overhead_s", "sampled_s", "prompt_s", "launches_s")]
"""What the host does: a draft's passes are launched without it."""
LOOP: Final = (
    "step_token_limit",
    "uncached",
    "arriving_per_sequence",
    "per_prompt",
    "resident",
    "ttft_floor_s",
    "full_prefill_step_s",
    "prefill_s",
    "ttft_alone_s",
)


@compiled
def _own_s(
    token_roofs: int,
    roofs: Array,
    experts: Array,
    steps: Array,
    decode: float,
    prefill: float,
    sampled: float,
) -> Any:
    """The sum of one network's terms of a step. [s]"""
    proposed = decode * (steps[10] - 1.0)
    mean = (decode + proposed + prefill) * steps[0]
    rows = _busiest_prefill(prefill, steps[0], steps[1], steps[14])
    tokens = (decode + proposed) * steps[0] + rows
    heads, yielded = (sampled + proposed) * steps[0], sampled + decode * (steps[11] - 1.0)
    total = _units_s(decode * steps[0], steps[2], steps[3]) + _units_s(tokens, steps[4], steps[5])
    total += _units_s(tokens, steps[6], 0.0)
    for place in range(roofs.shape[1]):
        passing = tokens if place < token_roofs else heads if place == token_roofs else rows
        roof = roofs[:, place]
        total += _rows_s(passing, roof[0], roof[1], roof[2])
    for place in range(experts.shape[1]):
        block = experts[:, place]
        visits = mean * steps[1] * block[6]
        touched = _touched_experts(visits, block[0], block[2], block[7])
        each = _tokens_each(visits, block[1], touched)
        total += touched * _rows_s(each, block[3], block[4], block[5])
    host_s = steps[7] + steps[8] * yielded + steps[9] * (sampled - decode)
    return _launched_s(total, rows, steps[12], steps[13]) + host_s


@compiled
def _step_s(of: Coefficients, layout: int, point: int, decode: float, prefill: float, sampled: float) -> Any:
    """The sum of all terms of one step: `StepPlan.terms` has them apart. [s]"""
    steps = of.steps[:, layout, point]
    roofs, experts = of.roofs[:, :, layout, point], of.experts[:, :, layout, point]
    total = _own_s(of.token_roofs, roofs, experts, steps, decode, prefill, sampled)
    if of.draft_passes > 0:
        first, steps = of.draft_token_roofs, of.draft_steps[:, layout, point]
        roofs, experts = of.draft_roofs[:, :, layout, point], of.draft_experts[:, :, layout, point]
        total += of.draft_passes * _own_s(first, roofs, experts, steps, decode, 0.0, decode)
        total += _own_s(first, roofs, experts, steps, 0.0, prefill, 0.0)
    return total


@compiled
def _alone_s(of: Coefficients, layout: int, point: int) -> Any:
    """Prefill of one prompt on an idle replica, in chunks of the token budget. [s]"""
    loop, rank_share = of.loop[:, layout, point], of.steps[0, layout, point]
    chunk = np.minimum(loop[1] / rank_share, loop[0])
    return loop[1] / rank_share / chunk * _step_s(of, layout, point, 0.0, chunk, chunk / loop[3])


@compiled
def _loop(
    of: Coefficients, layout: int, point: int, sequences: float, utilization_share: float
) -> tuple[float, float, float, float, float, float]:
    """Step, mixed and decode step, mixed share, prompt tokens of a mixed step, TTFT: as `Loop` has them."""
    loop = of.loop[:, layout, point]
    limit, uncached = loop[0], loop[1]
    verified, yielded = of.steps[10, layout, point], of.steps[11, layout, point]
    if of.is_split:
        decode_s = _step_s(of, layout, point, sequences, 0.0, sequences)
        ttft_s = loop[8] + _queue_factor(utilization_share, sequences) * loop[7]
        return decode_s / yielded, loop[6], decode_s, 0.0, limit, ttft_s
    room = np.maximum(limit - sequences * verified, 1.0)
    arriving = loop[2] * sequences
    dp = of.steps[1, layout, point]
    prefill = _mixed_prefill_tokens(arriving, uncached, room, dp)
    share = np.minimum(arriving / prefill, 1.0)
    if of.keeps_cache:
        decode_s = _step_s(of, layout, point, sequences, 0.0, sequences)
        mixed_s = _step_s(of, layout, point, sequences, prefill, sequences + prefill / loop[3])
    else:
        decode_s = mixed_s = _step_s(of, layout, point, 0.0, sequences * loop[4], sequences)
    step_s = share * mixed_s + (1.0 - share) * decode_s
    prompt_s = np.maximum(uncached * dp / room, 1.0) * mixed_s
    if of.keeps_cache and of.steps[0, layout, point] * dp < 1.0:
        prompt_s = np.maximum(prompt_s, _alone_s(of, layout, point))
    load = _prompt_load_share(utilization_share, arriving, room, mixed_s, step_s)
    together = room / np.minimum(uncached, room / dp)
    ttft_s = loop[5] + step_s / 2.0 + (1.0 + _queue_factor(load, sequences) / together) * prompt_s
    return step_s / yielded, mixed_s, decode_s, share, prefill, ttft_s


@compiled
def _prompts_s(
    of: Coefficients, layout: int, point: int, sequences: float, prefill: float
) -> tuple[float, float]:
    """A mixed step without its decode tokens, and the first token of one prompt on an idle replica. [s]"""
    loop = of.loop[:, layout, point]
    if of.is_split:
        return loop[6], loop[8]
    if not of.keeps_cache:
        return _step_s(of, layout, point, 0.0, sequences * loop[4], 0.0), loop[8]
    prompts_s = _step_s(of, layout, point, 0.0, prefill, prefill / loop[3])
    return prompts_s, loop[5] + _alone_s(of, layout, point)


@compiled
def loop_states(of: Coefficients, sequences: Array, utilization_share: float) -> Array:
    """The loop at given concurrencies, in the order of `Loop`. (9, layouts, points)"""
    layouts, points = of.loop.shape[1], of.loop.shape[2]
    states = np.empty((9, *sequences.shape))
    for row in range(sequences.shape[0]):
        for column in range(sequences.shape[1]):
            layout, point, running = min(row, layouts - 1), min(column, points - 1), sequences[row, column]
            found = _loop(of, layout, point, running, utilization_share)
            for place in range(6):
                states[place, row, column] = found[place]
            alone = _prompts_s(of, layout, point, running, found[4])
            states[6, row, column], states[7, row, column] = alone
            fewer = _loop(of, layout, point, utilization_share * running, utilization_share)
            states[8, row, column] = fewer[0]
    return states


@compiled
def _excess(of: Coefficients, layout: int, point: int, sequences: float, limits: Array) -> Any:
    """How far the slower of two latencies is over its objective, relative. [1]"""
    found = _loop(of, layout, point, sequences, limits[2])
    return np.maximum(found[0] / limits[0] - 1.0, found[5] / limits[1] - 1.0)


@compiled
def _bracket(
    of: Coefficients, layout: int, point: int, ceiling: float, near: float, limits: Array
) -> tuple[float, float, float, float]:
    """Two concurrencies with the root in between, and the excess at each; from `near` outwards, if it is a number.

    Both are the ceiling where that keeps the objectives, both NaN where not even one sequence does.
    """
    low = least = min(ceiling, 1.0)
    high, reach = ceiling, NEIGHBOURHOOD
    if least < near < ceiling:
        low = high = near
    f_low = f_high = _excess(of, layout, point, high, limits)
    if low == high:
        while f_low > 0 and low > least:
            high, f_high = low, f_low
            low, reach = max(low / (1.0 + reach), least), reach * 8.0
            f_low = _excess(of, layout, point, low, limits)
        while not f_high > 0 and high < ceiling:
            low, f_low = high, f_high
            high, reach = min(high * (1.0 + reach), ceiling), reach * 8.0
            f_high = _excess(of, layout, point, high, limits)
    elif f_high > 0:
        f_low = _excess(of, layout, point, low, limits)
    if not f_high > 0:
        return ceiling, ceiling, f_high, f_high
    if f_low > 0:
        return np.nan, np.nan, f_low, f_high
    return low, high, f_low, f_high


@compiled
def _most_at(of: Coefficients, layout: int, point: int, ceiling: float, near: float, limits: Array) -> float:
    """`most_sequences` at one point; `near` is what was found at the point before, which is often much alike."""
    low, high, f_low, f_high = _bracket(of, layout, point, ceiling, near, limits)
    if not low < high:
        return high
    for _ in range(ROOT_STEPS):
        gap = f_high - f_low
        middle = min(max(low - f_low * (high - low) / (gap if gap != 0 else 1.0), low), high)
        f_middle = _excess(of, layout, point, middle, limits)
        if abs(f_middle) < ROOT_TOLERANCE:
            return middle
        if f_middle > 0:
            scale = 1.0 - f_middle / f_high
            f_low *= scale if scale > 0 else 0.5
            high, f_high = middle, f_middle
        else:
            scale = 1.0 - f_middle / f_low if f_low != 0 else 0.5
            f_high *= scale if scale > 0 else 0.5
            low, f_low = middle, f_middle
    return low


@compiled
def most_sequences(
    of: Coefficients, ceiling: Array, tpot_s: float, ttft_s: float, utilization_share: float
) -> Array:
    """Largest concurrency up to `ceiling` that keeps the objectives: regula falsi with Anderson and Bjorck's scaling.

    NaN where even one sequence does not. Latency rises with concurrency, so the root is the only one.

    Parameters
    ----------
    tpot_s, ttft_s : float
        Infinite where nothing is asked. [s]

    References
    ----------
    .. [1] Anderson and Bjorck, BIT 13, 1973, "A new high order method of regula falsi type".
    """
    limits = np.array([tpot_s, ttft_s, utilization_share])
    most = ceiling.copy()
    for row in range(ceiling.shape[0]):
        near = np.nan
        for column in range(ceiling.shape[1]):
            found = _most_at(of, row, column, ceiling[row, column], near, limits)
            most[row, column] = found
            near = found if found < ceiling[row, column] else np.nan
    return most


def make_ready() -> None:
    """Compile, or fetch what was compiled before, so that no request has to wait for it."""
    one, steps = np.ones((1, 1)), np.ones((len(STEPS), 1, 1))
    roofs, experts = np.ones((3, 2, 1, 1)), np.ones((8, 1, 1, 1))
    network, loop = (1, roofs, experts, steps), np.ones((len(LOOP), 1, 1))
    of = Coefficients(*network, loop, True, False, 0.0, *network)
    most_sequences(of, loop_states(of, one, 1.0)[0], 1.0, 1.0, 1.0)
