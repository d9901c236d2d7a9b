"""Steady state of a replica: how many sequences run, how long a step takes, what a request costs in time."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.attention import Floats
from costsvc.engine.memory import Lengths, MemoryBudget, memory_budget, sequence_bytes, sequences_that_fit
from costsvc.engine.replica import Replica
from costsvc.engine.specs import Objectives, Traffic
from costsvc.engine.step import Batch, StepTime, step_time

BOUNDS: Final = ("memory", "max_num_seqs", "step_tokens", "tpot", "ttft", "given")
GIVEN: Final = BOUNDS.index("given")
ROOT_STEPS: Final = 30
ROOT_TOLERANCE: Final = 1e-9

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Loop:
    """The serving loop at a given concurrency. Arrays are (layouts, points).

    `mixed_share` of the steps carry `mixed_prefill` prompt tokens; the rest only decode. In disaggregated
    deployments none do, and `prefill_s` is the prefill pool's time for one prompt, transfer included.
    """

    step_s: Array
    mixed_step_s: Array
    decode_step_s: Array
    mixed_share: Array
    mixed_prefill: Array
    ttft_s: Array
    prefill_s: Array
    transfer_s: Array


@dataclass(frozen=True, slots=True)
class SteadyState:
    """The loop at the largest concurrency that meets every bound.

    `sequences` is NaN where no concurrency does; `bound` indexes `BOUNDS`; `limits` holds each bound's own
    concurrency. `request_gpu_s` is accelerator-seconds per request, both pools together.
    """

    sequences: Array
    bound: NDArray[np.int64]
    limits: dict[str, Array]
    loop: Loop
    requests_per_s: Array
    request_gpu_s: Array
    prefill_replicas: Array


def lengths_of(traffic: Traffic) -> Lengths:
    """One point of traffic."""
    return Lengths(
        uncached=np.asarray([traffic.uncached_input_tokens]),
        cached=np.asarray([traffic.cached_input_tokens]),
        output=np.asarray([traffic.output_tokens]),
        shared=np.asarray([traffic.shared_cached_tokens]),
        input_cv=traffic.input_cv,
        output_cv=traffic.output_cv,
        context_limit=traffic.context_limit_tokens,
        length_correlation=traffic.length_correlation,
    )


def run_loop(replica: Replica, lengths: Lengths, sequences: Floats, utilization_share: float) -> Loop:
    r"""The loop with `sequences` running.

    While each of B sequences makes its O tokens, B prompts of I tokens enter: whole where they come singly,
    several in a step where they come faster than steps, never more than the token budget of a step.
    Of the steps :math:`f = I B / (P O)` are mixed, and :math:`T = f T_{mix} + (1 - f) T_{dec}`.
    """
    sequences = np.asarray(sequences, dtype=np.float64)
    if replica.deployments[0].mode == "disaggregated":
        return _run_pools(replica, lengths, sequences, utilization_share)
    budget = step_token_limit(replica)
    room = np.maximum(budget - sequences, 1.0)
    arriving = lengths.uncached * sequences / lengths.output
    prefill = np.clip(arriving, np.minimum(lengths.uncached, room), room)
    share = np.minimum(arriving / prefill, 1.0)
    both = np.stack(np.broadcast_arrays(0.0, prefill))
    decode_s, mixed_s = np.asarray(step_time(replica, loop_batch(replica, lengths, sequences, both)).total_s)
    step_s = share * mixed_s + (1.0 - share) * decode_s
    prompt_s = np.maximum(lengths.uncached / room, 1.0) * mixed_s
    wait_s = (
        replica.calibration.ttft_floor_s
        + step_s / 2
        + queue_factor(utilization_share * share, sequences) * prompt_s
    )
    zero = np.zeros_like(step_s)
    return Loop(
        step_s=step_s,
        mixed_step_s=mixed_s,
        decode_step_s=decode_s,
        mixed_share=share + zero,
        mixed_prefill=prefill + zero,
        ttft_s=wait_s + prompt_s,
        prefill_s=zero,
        transfer_s=zero,
    )


def loop_batch(replica: Replica, lengths: Lengths, sequences: Floats, prefill: Floats) -> Batch:
    """The batch of one step; without a cache every sequence's prefix is recomputed."""
    first, last = lengths.long_prompt, lengths.long_prompt + lengths.long_output
    spread = lengths.prefill_spread_ratio
    if not replica.deployments[0].kv_cache:
        recomputed = sequences * lengths.resident + 0.0 * prefill
        return Batch(0.0, first, last, recomputed, 0.0, lengths.resident, sequences)
    sampled = sequences + prefill / lengths.per_prompt
    return Batch(sequences, first, last, prefill, lengths.cached * spread, lengths.prompt * spread, sampled)


def queue_factor(load_share: Floats, sequences: Floats) -> Floats:
    r"""Mean wait of a prompt in service times: M/D/1, :math:`\rho / 2(1 - \rho)`, at most half the loop. [1]

    References
    ----------
    .. [1] Kleinrock, Queueing Systems, vol. 1, 1975, eq. 5.63 (Pollaczek-Khinchin, constant service).
    """
    idle = np.maximum(1.0 - load_share, 1e-9)
    return np.minimum(load_share / (2.0 * idle), np.asarray(sequences) / 2)


def step_token_limit(replica: Replica) -> Array:
    """Tokens that one iteration of the whole replica may carry. [token]"""
    return replica.calibration.step_token_budget_tokens * replica.dp * replica.pp


def prompt_batch(replica: Replica, lengths: Lengths, tokens: Floats) -> Batch:
    """A step of `tokens` prompt tokens per engine process and nothing else."""
    ranks, spread = replica.dp * replica.pp, lengths.prefill_spread_ratio
    sampled = ranks * tokens / lengths.per_prompt
    return Batch(0.0, 0.0, 1.0, tokens * ranks, lengths.cached * spread, lengths.prompt * spread, sampled)


def ttft_unloaded_s(replica: Replica, lengths: Lengths) -> Array:
    """First token of one prompt on an idle replica, prefilled in chunks of the token budget. [s]

    In disaggregated deployments the cache's transfer and the first decode step are on the way.
    """
    chunk = np.minimum(lengths.uncached, replica.calibration.step_token_budget_tokens)
    prefill = lengths.uncached / chunk * step_time(replica, prompt_batch(replica, lengths, chunk)).total_s
    prefill = prefill + replica.calibration.ttft_floor_s
    if replica.deployments[0].mode == "colocated":
        return np.asarray(prefill)
    first = step_time(replica, loop_batch(replica, lengths, 1.0, 0.0)).total_s
    return np.asarray(prefill + transfer_s(replica, lengths) + first)


def transfer_s(replica: Replica, lengths: Lengths) -> Floats:
    """Sending a prompt's cache to the decode pool, each accelerator its share over its own port. [s]

    Fixed state is sent once a prompt, so its uncached tokens carry it.
    """
    state_bytes = sequence_bytes(replica, 0.0)
    once = state_bytes * (lengths.uncached / lengths.per_prompt)
    return (
        sequence_bytes(replica, lengths.prompt) - state_bytes + once
    ) / replica.calibration.network_bytes_per_s


def _run_pools(replica: Replica, lengths: Lengths, sequences: Array, utilization_share: float) -> Loop:
    """Decode pool alone, beside a prefill pool of the same layout whose steps are full."""
    decode_s = step_time(replica, loop_batch(replica, lengths, sequences, 0.0)).total_s
    budget = replica.calibration.step_token_budget_tokens
    full_s = step_time(replica, prompt_batch(replica, lengths, budget)).total_s
    sending_s = transfer_s(replica, lengths)
    prefill_s = lengths.uncached / step_token_limit(replica) * full_s + sending_s / replica.dp
    alone_s = ttft_unloaded_s(replica, lengths)
    zero = np.zeros_like(decode_s)
    return Loop(
        step_s=np.asarray(decode_s),
        mixed_step_s=np.asarray(full_s) + zero,
        decode_step_s=np.asarray(decode_s),
        mixed_share=zero,
        mixed_prefill=budget + zero,
        ttft_s=alone_s + queue_factor(utilization_share, sequences) * prefill_s,
        prefill_s=prefill_s + zero,
        transfer_s=sending_s + zero,
    )


def solve(
    replica: Replica,
    lengths: Lengths,
    objectives: Objectives,
    utilization_share: float,
    *,
    extra_kv_bytes: float = 0.0,
) -> SteadyState:
    """The largest concurrency that meets memory, scheduler and objectives, and the state there.

    Parameters
    ----------
    extra_kv_bytes : float
        Added to each accelerator's cache memory: for marginal values, and negative where an idle prefix
        cache takes its share. [B]
    """
    budget = memory_budget(replica)
    limits = concurrency_limits(replica, lengths, _with_extra(budget, extra_kv_bytes))
    names = list(limits)
    stacked = np.stack(np.broadcast_arrays(*limits.values()))
    ceiling = stacked.min(axis=0)
    bound = np.asarray([BOUNDS.index(name) for name in names])[stacked.argmin(axis=0)]
    sequences, loop = ceiling, run_loop(replica, lengths, ceiling, utilization_share)
    if objectives.tpot_s is not None or objectives.ttft_s is not None:
        sequences, loop = _within(replica, lengths, objectives, utilization_share, ceiling, loop)
        slower = (sequences < ceiling) | (np.isnan(sequences) & ~np.isnan(ceiling))
        bound = np.where(slower, _binding(loop, objectives), bound)
    return state_at(replica, lengths, sequences, loop, bound, limits)


def concurrency_limits(replica: Replica, lengths: Lengths, budget: MemoryBudget) -> dict[str, Array]:
    """Concurrency that each bound but latency allows, continuous. [sequences]"""
    fit = sequences_that_fit(replica, budget, lengths)
    whole = sequence_bytes(replica, lengths.context_limit) <= budget.kv_bytes
    limits = {
        "memory": np.where(whole, np.maximum(fit, 1.0), np.nan),
        "max_num_seqs": replica.calibration.max_sequences * replica.dp,
    }
    if replica.deployments[0].mode == "colocated" and replica.deployments[0].kv_cache:
        tokens = lengths.output / (lengths.uncached + lengths.output)
        limits["step_tokens"] = step_token_limit(replica) * tokens
    return {name: np.asarray(limit, dtype=np.float64) for name, limit in limits.items()}


def state_at(
    replica: Replica,
    lengths: Lengths,
    sequences: Array,
    loop: Loop,
    bound: NDArray[np.int64],
    limits: dict[str, Array],
) -> SteadyState:
    """Rates and cost of a loop."""
    decode_s = loop.step_s * lengths.output / sequences
    return SteadyState(
        sequences=sequences,
        bound=np.asarray(bound),
        limits=limits,
        loop=loop,
        requests_per_s=1.0 / decode_s,
        request_gpu_s=replica.gpus * (decode_s + loop.prefill_s),
        prefill_replicas=loop.prefill_s / decode_s,
    )


def breakdown(replica: Replica, lengths: Lengths, state: SteadyState) -> tuple[StepTime, StepTime]:
    """Terms of the decode-only and of the mixed (or prefill-pool) step at a state."""
    decode = step_time(replica, loop_batch(replica, lengths, state.sequences, 0.0))
    if replica.deployments[0].mode == "disaggregated":
        budget = replica.calibration.step_token_budget_tokens
        return decode, step_time(replica, prompt_batch(replica, lengths, budget))
    mixed = loop_batch(replica, lengths, state.sequences, state.loop.mixed_prefill)
    return decode, step_time(replica, mixed)


def _with_extra(budget: MemoryBudget, extra_bytes: float) -> MemoryBudget:
    if not extra_bytes:
        return budget
    return MemoryBudget(
        budget.usable_bytes,
        budget.reserved_bytes,
        budget.weight_bytes,
        budget.activation_bytes,
        budget.runtime_bytes,
        budget.collective_bytes,
        budget.kv_bytes + extra_bytes,
    )


def _excess(loop: Loop, objectives: Objectives) -> Array:
    """How far the slower of the two latencies is over its objective, relative. [1]"""
    tpot = -1.0 if objectives.tpot_s is None else loop.step_s / objectives.tpot_s - 1.0
    ttft = -1.0 if objectives.ttft_s is None else loop.ttft_s / objectives.ttft_s - 1.0
    return np.maximum(tpot, ttft)


def _binding(loop: Loop, objectives: Objectives) -> NDArray[np.int64]:
    tpot = -1.0 if objectives.tpot_s is None else loop.step_s / objectives.tpot_s
    ttft = -1.0 if objectives.ttft_s is None else loop.ttft_s / objectives.ttft_s
    return np.where(np.asarray(tpot) >= ttft, BOUNDS.index("tpot"), BOUNDS.index("ttft"))


def _within(
    replica: Replica,
    lengths: Lengths,
    objectives: Objectives,
    utilization_share: float,
    ceiling: Array,
    at_ceiling: Loop,
) -> tuple[Array, Loop]:
    """Largest concurrency up to `ceiling` that keeps the objectives: regula falsi with Anderson and Bjorck's scaling.

    NaN where even one sequence does not. Latency rises with concurrency, so the root is the only one.

    References
    ----------
    .. [1] Anderson and Bjorck, BIT 13, 1973, "A new high order method of regula falsi type".
    """
    low, high = np.minimum(ceiling, 1.0), ceiling
    f_high = _excess(at_ceiling, objectives)
    if np.all(f_high <= 0):
        return ceiling, at_ceiling
    f_low = _excess(run_loop(replica, lengths, low, utilization_share), objectives)
    unreachable, met = f_low > 0, f_high <= 0
    settled = unreachable | met | np.isnan(f_high)
    for _ in range(ROOT_STEPS):
        gap = np.where(f_high == f_low, 1.0, f_high - f_low)
        middle = np.clip(low - f_low * (high - low) / gap, low, high)
        f_middle = _excess(run_loop(replica, lengths, middle, utilization_share), objectives)
        right = f_middle > 0
        f_replaced = np.where(right, f_high, f_low)
        left_over = 1.0 - f_middle / np.where(f_replaced == 0, 1.0, f_replaced)
        scale = np.where(left_over > 0, left_over, 0.5)
        f_low, f_high = np.where(right, f_low * scale, f_middle), np.where(right, f_middle, f_high * scale)
        low, high = np.where(right, low, middle), np.where(right, middle, high)
        if np.all(settled | (np.abs(f_middle) < ROOT_TOLERANCE)):
            low = np.where(right & (f_middle < ROOT_TOLERANCE), middle, low)
            break
    sequences = np.where(met, ceiling, np.where(unreachable, np.nan, low))
    return sequences, run_loop(replica, lengths, sequences, utilization_share)
