"""The formulas of the serving loop: written once, and compiled for the search over concurrency.

The first half are formulas, elementwise on numbers, arrays, or whatever else computes like them: the audit
workbook runs them on its cells. The search asks them of single numbers millions of times, where the call of a
NumPy function costs a hundred times its arithmetic; the second half runs them as machine code.

All that is compiled stands in this file, so that the compiler's cache sees a change here.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.compiling import compiled

Array = NDArray[np.float64]

ROOT_STEPS: Final = 60
FAR: Final = 0.03
NEWTON_STEPS: Final = 8
NEAR: Final = 1e-7
LAST_STEP: Final = 1e-13
"""So small, what is left times how much the slope just changed, the error of a step from near needs no looking at."""


def rows_s(rows: Any, row_s: Any, memory_s: Any, half_rows: Any) -> Any:
    r"""An operator on rows of tokens, :math:`\sqrt{((m + m_{1/2}) t_{row})^2 + t_m^2}`; no rows cost nothing. [s]"""
    return (rows > 0) * np.sqrt(((rows + half_rows) * row_s) ** 2 + memory_s**2)


def units_s(units: Any, once_s: Any, unit_s: Any) -> Any:
    """An operator whose time rises straight with its work; no work costs nothing. [s]"""
    return (units > 0) * (once_s + units * unit_s)


def launched_s(kernels_s: Any, prefill: Any, launches_s: Any, captured_tokens: Any) -> Any:
    """Kernels, under the roof of what the host launches where prompts are more than a captured graph holds. [s]"""
    return np.sqrt(kernels_s**2 + (np.minimum(prefill / captured_tokens, 1.0) * launches_s) ** 2)


def touched_experts(tokens: Any, experts: Any, spread: Any, evenness: Any) -> Any:
    r"""Expected experts that a batch touches, :math:`E (1 - (1 + m s)^{-\kappa})`, s by `parameters.spread_ratio`.

    Experts are not equally sought: their popularity is spread like a gamma variate of shape :math:`\kappa`, which
    turns the exponential of uniform routing, :math:`E (1 - (1 - k/E)^m)`, into that power; the larger, the more
    even. One token touches k.

    References
    ----------
    .. [1] Occupancy of E cells by m draws of k without replacement; Feller, An Introduction to Probability
       Theory, vol. 1, 3rd ed., section IV.2.
    """
    return -experts * np.expm1(-evenness * np.log1p(tokens * spread))


def tokens_each(tokens: Any, experts_per_token: Any, touched: Any) -> Any:
    """Tokens that each touched expert sees. [token]"""
    return tokens * experts_per_token / np.maximum(touched, 1.0)


def mixed_prefill_tokens(arriving: Any, uncached: Any, room: Any, dp: Any, gathering: Any) -> Any:
    """Prompt tokens of a step that has some: what a rank and a share of the others take, or all that arrive. [token]"""
    ranks = 1.0 + gathering * (dp - 1.0)
    return np.minimum(np.maximum(arriving, ranks * np.minimum(uncached, room / dp)), room)


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


_rows_s, _units_s, _queue_factor = compiled(rows_s), compiled(units_s), compiled(queue_factor)
_touched_experts, _tokens_each = compiled(touched_experts), compiled(tokens_each)
_mixed_prefill_tokens, _launched_s = compiled(mixed_prefill_tokens), compiled(launched_s)
_busiest_prefill, _prompt_load_share = compiled(busiest_prefill), compiled(prompt_load_share)


class Network(NamedTuple):
    """One network's numbers in a row, from `start`: `STEPS`, roofs, kinds of experts, then what contexts change.

    Roofs are row_s, memory_s and half_rows: of what all tokens pass (`token_roofs` many) and the head. Experts are
    number, experts per token, how fast a batch spreads over them, the roof of one, the skew of the busiest rank
    and the evenness. Contexts change decode attention, once and for each sequence, the tokens of a prompt, and the
    roofs of prefill attention (`prefill_roofs` many).
    """

    start: int
    token_roofs: int
    experts: int
    prefill_roofs: int


class Coefficients(NamedTuple):
    """What the steps of a loop cost per unit of their work: `rows` has the numbers of each (layout, point).

    A row is `LOOP`, then `own`, then `draft`: the network that proposes tokens passes `draft_passes` times, 0
    where there is none.
    """

    rows: Array
    own: Network
    draft: Network
    draft_passes: float
    keeps_cache: bool
    is_split: bool


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
    "prompt_gathering_share",
)
_LIMIT, _UNCACHED, _ARRIVING, _PER_PROMPT, _RESIDENT, _FLOOR, _FULL, _POOL, _ALONE, _GATHER = range(len(LOOP))
STEPS: Final = (
    "rank_share",
    "dp",
    "verified_tokens",
    "tokens_per_step",
    "communication_once_s",
    "communication_token_s",
    "layer_overhead_s",
    "captured_tokens",
    "launches_s",
    "step_overhead_s",
    "sampled_s",
    "prompt_s",
)
HOST_STEPS: Final = slice(STEPS.index("launches_s"), len(STEPS))
"""What the host does: a draft's passes are launched without it."""
CONTEXT_NUMBERS: Final = 3
ROOF_NUMBERS: Final = 3
EXPERT_NUMBERS: Final = 8
_RANK_SHARE, _DP, _VERIFIED, _YIELDED = range(len(LOOP), len(LOOP) + 4)


@compiled
def _network_s(row: Array, of: Network, decode: float, prefill: float, sampled: float) -> Any:
    """The sum of one network's terms of a step. [s]"""
    at = of.start + len(STEPS)
    rank_share, dp, verified, yielded, exchange_s, exchanged_s = row[of.start : at - 6]
    layers_s, captured, launches_s, step_s, sampled_s, prompt_s = row[at - 6 : at]
    contexts = at + (of.token_roofs + 1) * ROOF_NUMBERS + of.experts * EXPERT_NUMBERS
    attention_s, sequence_s, prompt = row[contexts : contexts + CONTEXT_NUMBERS]
    proposed = decode * (verified - 1.0)
    busiest = _busiest_prefill(prefill, rank_share, dp, prompt)
    tokens = (decode + proposed) * rank_share + busiest
    total = _units_s(decode * rank_share, attention_s, sequence_s)
    total += _units_s(tokens, exchange_s, exchanged_s) + _units_s(tokens, layers_s, 0.0)
    for place in range(of.token_roofs + 1):
        passing = tokens if place < of.token_roofs else (sampled + proposed) * rank_share
        total += _rows_s(passing, row[at], row[at + 1], row[at + 2])
        at += ROOF_NUMBERS
    visits = (decode + proposed + prefill) * rank_share * dp
    for _ in range(of.experts):
        busy = visits * row[at + 6]
        touched = _touched_experts(busy, row[at], row[at + 2], row[at + 7])
        each = _tokens_each(busy, row[at + 1], touched)
        total += touched * _rows_s(each, row[at + 3], row[at + 4], row[at + 5])
        at += EXPERT_NUMBERS
    at += CONTEXT_NUMBERS
    for _ in range(of.prefill_roofs):
        total += _rows_s(busiest, row[at], row[at + 1], row[at + 2])
        at += ROOF_NUMBERS
    host_s = step_s + sampled_s * (sampled + decode * (yielded - 1.0)) + prompt_s * (sampled - decode)
    return _launched_s(total, busiest, launches_s, captured) + host_s


@compiled
def _step_s(of: Coefficients, row: Array, decode: float, prefill: float, sampled: float) -> Any:
    """The sum of all terms of one step: `StepPlan.terms` has them apart. [s]"""
    total = _network_s(row, of.own, decode, prefill, sampled)
    if of.draft_passes > 0:
        total += of.draft_passes * _network_s(row, of.draft, decode, 0.0, decode)
        total += _network_s(row, of.draft, 0.0, prefill, 0.0)
    return total


@compiled
def _row(of: Coefficients, layout: int, point: int) -> Any:
    """The numbers of a layout and point; one of either stands for all."""
    return of.rows[min(layout, of.rows.shape[0] - 1), min(point, of.rows.shape[1] - 1)]


@compiled
def _alone_s(of: Coefficients, row: Array) -> Any:
    """Prefill of one prompt on an idle replica, in chunks of the token budget. [s]"""
    prompt = row[_UNCACHED] / row[_RANK_SHARE]
    chunk = np.minimum(prompt, row[_LIMIT])
    return prompt / chunk * _step_s(of, row, 0.0, chunk, chunk / row[_PER_PROMPT])


@compiled
def _pace(of: Coefficients, row: Array, sequences: float) -> tuple[float, float, float, float, float]:
    """Mean, mixed and decode step, mixed share, prompt tokens of a mixed step. [s], [1], [token]"""
    if of.is_split:
        decode_s = _step_s(of, row, sequences, 0.0, sequences)
        return decode_s, row[_FULL], decode_s, 0.0, row[_LIMIT]
    room = np.maximum(row[_LIMIT] - sequences * row[_VERIFIED], 1.0)
    arriving = row[_ARRIVING] * sequences
    prefill = _mixed_prefill_tokens(arriving, row[_UNCACHED], room, row[_DP], row[_GATHER])
    share = np.minimum(arriving / prefill, 1.0)
    if of.keeps_cache:
        decode_s = _step_s(of, row, sequences, 0.0, sequences)
        mixed_s = _step_s(of, row, sequences, prefill, sequences + prefill / row[_PER_PROMPT])
    else:
        decode_s = mixed_s = _step_s(of, row, 0.0, sequences * row[_RESIDENT], sequences)
    return share * mixed_s + (1.0 - share) * decode_s, mixed_s, decode_s, share, prefill


@compiled
def _first_s(
    of: Coefficients,
    row: Array,
    sequences: float,
    utilization_share: float,
    pace: tuple[float, float, float, float, float],
) -> Any:
    """Time to first token, waiting included. [s]"""
    if of.is_split:
        return row[_ALONE] + _queue_factor(utilization_share, sequences) * row[_POOL]
    step_s, mixed_s, dp, uncached = pace[0], pace[1], row[_DP], row[_UNCACHED]
    room = np.maximum(row[_LIMIT] - sequences * row[_VERIFIED], 1.0)
    prompt_s = np.maximum(uncached * dp / room, 1.0) * mixed_s
    if of.keeps_cache and row[_RANK_SHARE] * dp < 1.0:
        prompt_s = np.maximum(prompt_s, _alone_s(of, row))
    load = _prompt_load_share(utilization_share, row[_ARRIVING] * sequences, room, mixed_s, step_s)
    together = room / np.minimum(uncached, room / dp)
    return row[_FLOOR] + step_s / 2.0 + (1.0 + _queue_factor(load, sequences) / together) * prompt_s


@compiled
def _prompts_s(of: Coefficients, row: Array, sequences: float, prefill: float) -> tuple[float, float]:
    """A mixed step without its decode tokens, and the first token of one prompt on an idle replica. [s]"""
    if of.is_split:
        return row[_FULL], row[_ALONE]
    if not of.keeps_cache:
        return _step_s(of, row, 0.0, sequences * row[_RESIDENT], 0.0), row[_ALONE]
    return _step_s(of, row, 0.0, prefill, prefill / row[_PER_PROMPT]), row[_FLOOR] + _alone_s(of, row)


@compiled
def loop_states(of: Coefficients, sequences: Array, utilization_share: float) -> Array:
    """The loop at given concurrencies, in the order of `Loop`. (9, layouts, points)"""
    states = np.empty((9, *sequences.shape))
    for layout in range(sequences.shape[0]):
        for point in range(sequences.shape[1]):
            row, running, at = _row(of, layout, point), sequences[layout, point], states[:, layout, point]
            pace = _pace(of, row, running)
            at[0], at[1], at[2], at[3], at[4] = pace
            at[5] = _first_s(of, row, running, utilization_share, pace)
            at[6], at[7] = _prompts_s(of, row, running, pace[4])
            at[8] = _pace(of, row, utilization_share * running)[0]
            at[0], at[8] = at[0] / row[_YIELDED], at[8] / row[_YIELDED]
    return states


@compiled
def steps_s(of: Coefficients, sequences: Array) -> Array:
    """Time per output token at given concurrencies, and nothing else. (layouts, points) [s]"""
    found = np.empty(sequences.shape)
    for layout in range(sequences.shape[0]):
        for point in range(sequences.shape[1]):
            row = _row(of, layout, point)
            found[layout, point] = _pace(of, row, sequences[layout, point])[0] / row[_YIELDED]
    return found


@compiled
def _excess(of: Coefficients, row: Array, sequences: float, limits: Array) -> Any:
    """How far the slower of two latencies is over its objective, relative. [1]"""
    pace = _pace(of, row, sequences)
    over = pace[0] / row[_YIELDED] / limits[0] - 1.0
    if limits[1] < np.inf:
        over = np.maximum(over, _first_s(of, row, sequences, limits[2], pace) / limits[1] - 1.0)
    return over


@compiled
def _near(
    of: Coefficients, row: Array, ceiling: float, start: float, slope: float, limits: Array
) -> tuple[float, float]:
    """Newton's steps from a neighbour's root, their slope renewed by secants: root and slope, NaN where they fail."""
    if not (1.0 < start < ceiling and slope > 0):
        return np.nan, np.nan
    running, over, bend = start, _excess(of, row, start, limits), 1.0
    for _ in range(NEWTON_STEPS):
        then = running - over / slope
        if not 1.0 <= then < ceiling:
            break
        if abs(over) < NEAR and abs(over * bend) < LAST_STEP:
            return then, slope
        over_then = _excess(of, row, then, limits)
        steep = (over_then - over) / (then - running)
        bend, slope = steep / slope - 1.0, steep
        running, over = then, over_then
    return np.nan, np.nan


@compiled
def _between(
    of: Coefficients, row: Array, low: float, high: float, f_low: float, f_high: float, limits: Array
) -> tuple[float, float]:
    """The root between two concurrencies, and the slope there."""
    ceiling = high
    for turn in range(ROOT_STEPS):
        part = 0.5 if turn % 2 else f_low / (f_low - f_high)
        middle, secant = low + part * (high - low), (f_high - f_low) / (high - low)
        f_middle = _excess(of, row, middle, limits)
        if abs(f_middle) < FAR:
            found, steep = _near(of, row, ceiling, middle, secant, limits)
            if found > 0:
                return found, steep
        if f_middle > 0:
            high, f_high = middle, f_middle
        else:
            low, f_low = middle, f_middle
    return low, np.nan


@compiled
def _most_at(
    of: Coefficients, row: Array, ceiling: float, near: float, slope: float, is_near: bool, limits: Array
) -> tuple[float, float]:
    """`most_sequences` at one point, and the slope where it is a root; that is sought at once where it `is_near`."""
    if is_near:
        found, steep = _near(of, row, ceiling, near, slope, limits)
        if found > 0:
            return found, steep
    f_high = _excess(of, row, ceiling, limits)
    if not f_high > 0:
        return ceiling, np.nan
    low, high = min(ceiling, 1.0), ceiling
    f_low = _excess(of, row, low, limits)
    if f_low > 0:
        return np.nan, np.nan
    if not is_near:
        found, steep = _near(of, row, ceiling, near, slope, limits)
        if found > 0:
            return found, steep
    return _between(of, row, low, high, f_low, f_high, limits)


@compiled
def most_sequences(
    of: Coefficients, ceiling: Array, tpot_s: float, ttft_s: float, utilization_share: float
) -> Array:
    """Largest concurrency up to `ceiling` that keeps the objectives, NaN where even one sequence does not.

    Latency rises with concurrency, so the root is the only one. Newton's steps find it from that of the point before,
    which is often much alike, or from where regula falsi and bisection in turn come near it.

    Parameters
    ----------
    tpot_s, ttft_s : float
        Infinite where nothing is asked. [s]
    """
    limits = np.array([tpot_s, ttft_s, utilization_share])
    most = np.empty(ceiling.shape)
    for layout in range(ceiling.shape[0]):
        near, slope, is_near = np.nan, np.nan, False
        for point in range(ceiling.shape[1]):
            row, top = _row(of, layout, point), ceiling[layout, point]
            found, steep = _most_at(of, row, top, near, slope, is_near, limits)
            is_near = steep > 0
            if is_near:
                near, slope = found, steep
            most[layout, point] = found
    return most


def make_ready() -> None:
    """Compile, or fetch what was compiled before, so that no request has to wait for it."""
    one, network = np.ones((1, 1)), Network(start=0, token_roofs=1, experts=1, prefill_roofs=1)
    of = Coefficients(np.ones((1, 1, 99)), network, network, 0.0, keeps_cache=True, is_split=False)
    loop_states(of, most_sequences(of, steps_s(of, one), 1.0, 1.0, 1.0), 1.0)
