"""The serving loop as machine code: its numbers in rows, and the search over concurrency.

The search asks the formulas of single numbers millions of times, where the call of a NumPy function costs a hundred
times its arithmetic.
"""

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.compiling import compiled, inlined
from costsvc.engine.formulas import (
    busiest_prefill,
    launched_s,
    mixed_prefill_tokens,
    prompt_load_share,
    queue_factor,
    rows_s,
    tokens_each,
    touched_experts,
    units_s,
)

Array = NDArray[np.float64]
Pace: TypeAlias = tuple[float, float, float, float, float]

ROOT_STEPS: Final = 60
FAR: Final = 0.03
NEWTON_STEPS: Final = 8
NEAR: Final = 1e-7
LAST_STEP: Final = 1e-13
"""So small, what is left times how much the slope just changed, the error of a step from near needs no looking at."""


_rows_s, _units_s, _queue_factor = inlined(rows_s), inlined(units_s), inlined(queue_factor)
_touched_experts, _tokens_each = inlined(touched_experts), inlined(tokens_each)
_mixed_prefill_tokens, _launched_s = inlined(mixed_prefill_tokens), inlined(launched_s)
_busiest_prefill, _prompt_load_share = inlined(busiest_prefill), inlined(prompt_load_share)


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


class Reading(NamedTuple):
    """How a row is read: what the steps of a loop of one (layout, point) cost per unit of their work.

    A row is `LOOP`, then `own`, then `draft`: the network that proposes tokens passes `draft_passes` times, 0
    where there is none.
    """

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
    "transfer_s",
    "output",
    "gpus",
)
_LIMIT, _UNCACHED, _ARRIVING, _PER_PROMPT, _RESIDENT, _FLOOR, _FULL, _POOL, _ALONE, _GATHER = range(10)
_TRANSFER, _OUTPUT, _GPUS = range(10, len(LOOP))
LIMITS: Final = 3
"""Numbers at the end of a row that is searched: concurrencies that memory, scheduler and token budget allow."""
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


@inlined
def _network_s(row: Array, of: Network, decode: float, prefill: float, sampled: float) -> Any:
    """The sum of one network's terms of a step. [s]"""
    at = of.start
    rank_share, dp = row[at], row[at + 1]
    proposed = decode * (row[at + 2] - 1.0)
    host_s = (
        row[at + 9]
        + row[at + 10] * (sampled + decode * (row[at + 3] - 1.0))
        + row[at + 11] * (sampled - decode)
    )
    launches_s, captured = row[at + 8], row[at + 7]
    contexts = at + len(STEPS) + (of.token_roofs + 1) * ROOF_NUMBERS + of.experts * EXPERT_NUMBERS
    busiest = 0.0
    if prefill > 0:
        busiest = _busiest_prefill(prefill, rank_share, dp, row[contexts + 2])
    tokens = (decode + proposed) * rank_share + busiest
    total = _units_s(decode * rank_share, row[contexts], row[contexts + 1])
    total += _units_s(tokens, row[at + 4], row[at + 5]) + _units_s(tokens, row[at + 6], 0.0)
    at += len(STEPS)
    for _ in range(of.token_roofs):
        total += _rows_s(tokens, row[at], row[at + 1], row[at + 2])
        at += ROOF_NUMBERS
    total += _rows_s((sampled + proposed) * rank_share, row[at], row[at + 1], row[at + 2])
    at += ROOF_NUMBERS
    if of.experts > 0:
        visits = (decode + proposed + prefill) * rank_share * dp
        for _ in range(of.experts):
            busy = visits * row[at + 6]
            touched = _touched_experts(busy, row[at], row[at + 2], row[at + 7])
            each = _tokens_each(busy, row[at + 1], touched)
            total += touched * _rows_s(each, row[at + 3], row[at + 4], row[at + 5])
            at += EXPERT_NUMBERS
    if not busiest > 0:
        return total + host_s
    at += CONTEXT_NUMBERS
    for _ in range(of.prefill_roofs):
        total += _rows_s(busiest, row[at], row[at + 1], row[at + 2])
        at += ROOF_NUMBERS
    return _launched_s(total, busiest, launches_s, captured) + host_s


@compiled
def _draft_s(of: Reading, row: Array, decode: float, prefill: float) -> Any:
    """What proposes tokens passes once for each, and prefills the same prompts. [s]"""
    passes_s = of.draft_passes * _network_s(row, of.draft, decode, 0.0, decode)
    return passes_s + _network_s(row, of.draft, 0.0, prefill, 0.0)


@inlined
def _step_s(of: Reading, row: Array, decode: float, prefill: float, sampled: float) -> Any:
    """The sum of all terms of one step: `StepPlan.terms` has them apart. [s]"""
    total = _network_s(row, of.own, decode, prefill, sampled)
    if of.draft_passes > 0:
        total += _draft_s(of, row, decode, prefill)
    return total


@compiled
def _row(rows: Array, layout: int, point: int) -> Any:
    """The numbers of a layout and point; one of either stands for all."""
    return rows[min(layout, rows.shape[0] - 1), min(point, rows.shape[1] - 1)]


@compiled
def _alone_s(of: Reading, row: Array) -> Any:
    """Prefill of one prompt on an idle replica, in chunks of the token budget. [s]"""
    prompt = row[_UNCACHED] / row[_RANK_SHARE]
    chunk = np.minimum(prompt, row[_LIMIT])
    return prompt / chunk * _step_s(of, row, 0.0, chunk, chunk / row[_PER_PROMPT])


@compiled
def _pace(of: Reading, row: Array, sequences: float) -> Pace:
    """Mean, mixed and decode step, mixed share, prompt tokens of a mixed step. [s], [1], [token]"""
    decode, recomputed = sequences, 0.0
    if not (of.keeps_cache or of.is_split):
        decode, recomputed = 0.0, sequences * row[_RESIDENT]
    decode_s = _step_s(of, row, decode, recomputed, sequences)
    if of.is_split:
        return decode_s, row[_FULL], decode_s, 0.0, row[_LIMIT]
    room = np.maximum(row[_LIMIT] - sequences * row[_VERIFIED], 1.0)
    arriving = row[_ARRIVING] * sequences
    prefill = _mixed_prefill_tokens(arriving, row[_UNCACHED], room, row[_DP], row[_GATHER])
    share, mixed_s = np.minimum(arriving / prefill, 1.0), decode_s
    if of.keeps_cache:
        mixed_s = _step_s(of, row, sequences, prefill, sequences + prefill / row[_PER_PROMPT])
    return share * mixed_s + (1.0 - share) * decode_s, mixed_s, decode_s, share, prefill


@compiled
def _first_s(of: Reading, row: Array, sequences: float, utilization_share: float, pace: Pace) -> Any:
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
def _prompts_s(of: Reading, row: Array, sequences: float, prefill: float) -> tuple[float, float]:
    """A mixed step without its decode tokens, and the first token of one prompt on an idle replica. [s]"""
    if of.is_split:
        return row[_FULL], row[_ALONE]
    if not of.keeps_cache:
        return _step_s(of, row, 0.0, sequences * row[_RESIDENT], 0.0), row[_ALONE]
    return _step_s(of, row, 0.0, prefill, prefill / row[_PER_PROMPT]), row[_FLOOR] + _alone_s(of, row)


@compiled
def loop_states(rows: Array, of: Reading, sequences: Array, utilization_share: float) -> Array:
    """The loop at given concurrencies, in the order of `Loop`. (11, layouts, points)"""
    states = np.empty((11, *sequences.shape))
    for layout in range(sequences.shape[0]):
        for point in range(sequences.shape[1]):
            row, running, at = _row(rows, layout, point), sequences[layout, point], states[:, layout, point]
            pace = _pace(of, row, running)
            at[0], at[1], at[2], at[3], at[4] = pace
            at[5] = _first_s(of, row, running, utilization_share, pace)
            at[6], at[7] = _prompts_s(of, row, running, pace[4])
            at[8] = _pace(of, row, utilization_share * running)[0]
            at[0], at[8] = at[0] / row[_YIELDED], at[8] / row[_YIELDED]
            at[9], at[10] = row[_POOL], row[_TRANSFER]
    return states


@compiled
def steps_s(rows: Array, of: Reading, sequences: Array) -> Array:
    """Time per output token at given concurrencies, and nothing else. (layouts, points) [s]"""
    found = np.empty(sequences.shape)
    for layout in range(sequences.shape[0]):
        for point in range(sequences.shape[1]):
            row = _row(rows, layout, point)
            found[layout, point] = _pace(of, row, sequences[layout, point])[0] / row[_YIELDED]
    return found


@inlined
def _excess(of: Reading, row: Array, sequences: float, limits: Array) -> Any:
    """How far the slower of two latencies is over its objective, relative. [1]"""
    pace = _pace(of, row, sequences)
    over = pace[0] / row[_YIELDED] / limits[0] - 1.0
    if limits[1] < np.inf:
        over = np.maximum(over, _first_s(of, row, sequences, limits[2], pace) / limits[1] - 1.0)
    return over


@compiled
def _near(
    of: Reading, row: Array, ceiling: float, start: float, slope: float, limits: Array
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
    of: Reading, row: Array, low: float, high: float, f_low: float, f_high: float, limits: Array
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
    of: Reading, row: Array, ceiling: float, near: float, slope: float, is_near: bool, limits: Array
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


@inlined
def _request_gpu_s(row: Array, sequences: float, step_s: float) -> Any:
    """What a request costs with so many running, at a time per output token. [accelerator-second]"""
    return row[_GPUS] * (step_s * row[_OUTPUT] / sequences + row[_POOL])


@inlined
def _ceiling(row: Array) -> tuple[float, int]:
    """The least of the limits, and which it is."""
    least, bound = row[-LIMITS], 0
    for place in range(1, LIMITS):
        if row[place - LIMITS] < least:
            least, bound = row[place - LIMITS], place
    return least, bound


@compiled
def _found(of: Reading, row: Array, running: float, objectives: Array) -> tuple[float, float, int]:
    """Sequences, what a request costs with so many, or with one alone where NaN, and what bounds them."""
    ceiling, bound = _ceiling(row)
    if running < ceiling and not objectives[1] < np.inf:
        # Nothing but the time per output token was in the way, so it is what was asked for.
        return running, _request_gpu_s(row, running, objectives[0]), LIMITS
    at = np.minimum(ceiling, 1.0) if np.isnan(running) else running
    pace = _pace(of, row, at)
    step_s = pace[0] / row[_YIELDED]
    if not (running >= ceiling or np.isnan(ceiling)):
        over = _first_s(of, row, at, objectives[2], pace) / objectives[1] if objectives[1] < np.inf else -1.0
        bound = LIMITS + (over > step_s / objectives[0])
    return running, _request_gpu_s(row, at, step_s), bound


@compiled
def most_sequences(rows: Array, of: Reading, tpot_s: float, ttft_s: float, utilization_share: float) -> Array:
    """Largest concurrency within the limits that keeps the objectives, and what a request then costs.

    Latency rises with concurrency, so the root is the only one. Newton's steps find it from that of the point before,
    from the layout before in proportion to accelerators, or from where regula falsi and bisection in turn come near.

    Parameters
    ----------
    tpot_s, ttft_s : float
        Infinite where nothing is asked. [s]

    Returns
    -------
    (3, layouts, points) array
        Sequences, NaN where even one does not keep the objectives; accelerator-seconds, then of one alone; what bounds
        them, first the limits in their order, then time per output token and time to first token.
    """
    objectives = np.array([tpot_s, ttft_s, utilization_share])
    most = np.empty((3, *rows.shape[:2]))
    near, slope, gpus = np.nan, np.nan, 1.0
    for layout in range(rows.shape[0]):
        growth = rows[layout, 0, _GPUS] / gpus
        near, slope, is_near, gpus = near * growth, slope / growth, False, rows[layout, 0, _GPUS]
        for point in range(rows.shape[1]):
            row, at = rows[layout, point], most[:, layout, point]
            found, steep = _most_at(of, row, _ceiling(row)[0], near, slope, is_near, objectives)
            is_near = steep > 0
            if is_near:
                near, slope = found, steep
            at[0], at[1], at[2] = _found(of, row, found, objectives)
    return most


def make_ready() -> None:
    """Compile, or fetch what was compiled before, so that no request has to wait for it."""
    network = Network(start=0, token_roofs=1, experts=1, prefill_roofs=1)
    rows, of = np.ones((1, 1, 99)), Reading(network, network, 0.0, keeps_cache=True, is_split=False)
    loop_states(rows, of, steps_s(rows, of, most_sequences(rows, of, 1.0, 1.0, 1.0)[0]), 1.0)
