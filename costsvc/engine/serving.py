"""Steady state of a replica: how many sequences run, how long a step takes, what a request costs in time."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.attention import Floats
from costsvc.engine.formulas import Array
from costsvc.engine.loop import Loop, LoopPlan, loop_batch, prompt_batch, step_token_limit
from costsvc.engine.memory import Lengths, MemoryBudget, memory_budget, sequence_bytes, sequences_that_fit
from costsvc.engine.replica import Replica
from costsvc.engine.specs import Objectives, Traffic
from costsvc.engine.step import StepTime, step_time

BOUNDS: Final = ("memory", "max_num_seqs", "step_tokens", "tpot", "ttft", "given")
GIVEN: Final = BOUNDS.index("given")


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

    def only(self, layout: slice, point: slice) -> "SteadyState":
        """Some layouts and points of it."""

        def part(value: Array) -> Array:
            return value[layout, point]

        loop = Loop(*(part(getattr(self.loop, one.name)) for one in fields(Loop)))
        return SteadyState(
            sequences=part(self.sequences),
            bound=self.bound[layout, point],
            limits={name: part(limit) for name, limit in self.limits.items()},
            loop=loop,
            requests_per_s=part(self.requests_per_s),
            request_gpu_s=part(self.request_gpu_s),
            prefill_replicas=part(self.prefill_replicas),
        )


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


def solve(
    replica: Replica,
    lengths: Lengths,
    objectives: Objectives,
    utilization_share: float,
    *,
    extra_kv_bytes: Floats = 0.0,
) -> SteadyState:
    """The largest concurrency that meets memory, scheduler and objectives, and the state there.

    Parameters
    ----------
    extra_kv_bytes : float or array
        Added to each accelerator's cache memory: for marginal values, and negative where an idle prefix
        cache takes its share. [B]
    """
    budget = replace(memory_budget(replica), kv_bytes=memory_budget(replica).kv_bytes + extra_kv_bytes)
    limits = concurrency_limits(replica, lengths, budget)
    stacked = np.empty((len(limits), *np.broadcast(*limits.values()).shape))
    for place, limit in enumerate(limits.values()):
        stacked[place] = limit
    limits = dict(zip(limits, stacked, strict=True))
    ceiling = stacked.min(axis=0)
    bound = np.asarray([BOUNDS.index(name) for name in limits])[stacked.argmin(axis=0)]
    plan = LoopPlan(replica, lengths, utilization_share)
    sequences = plan.most(objectives, ceiling)
    loop = plan.at(sequences)
    slower = (sequences < ceiling) | (np.isnan(sequences) & ~np.isnan(ceiling))
    if slower.any():
        bound = np.where(slower, _binding(loop, objectives), bound)
    return state_at(replica, lengths, sequences, loop, bound, limits)


def solve_together(
    replica: Replica,
    requests: Sequence[Lengths],
    objectives: Objectives,
    utilization_share: float,
    extra_kv_bytes: Sequence[float],
) -> list[SteadyState]:
    """The states of several requests on the same layouts, each with its own extra memory, in one evaluation.

    Parameters
    ----------
    requests : sequence of Lengths
        Points of each; the spread of lengths is that of the first.
    """
    counts = [np.size(one.uncached) for one in requests]
    ends = np.cumsum(counts)
    places = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]

    def joined(values: Sequence[Floats]) -> Array:
        row = np.empty(ends[-1])
        for place, value in zip(places, values, strict=True):
            row[place] = value
        return row

    together = replace(
        requests[0],
        uncached=joined([one.uncached for one in requests]),
        cached=joined([one.cached for one in requests]),
        output=joined([one.output for one in requests]),
        shared=joined([one.shared for one in requests]),
        context_limit=joined([one.context_limit for one in requests]),
        prompt_unit=joined([one.per_prompt for one in requests]),
    )
    state = solve(replica, together, objectives, utilization_share, extra_kv_bytes=joined(extra_kv_bytes))
    return [state.only(slice(None), place) for place in places]


def concurrency_limits(replica: Replica, lengths: Lengths, budget: MemoryBudget) -> dict[str, Array]:
    """Concurrency that each bound but latency allows, continuous. [sequences]"""
    fit = sequences_that_fit(replica, budget, lengths)
    whole = sequence_bytes(replica, lengths.context_limit) <= budget.kv_bytes
    limits = {
        "memory": np.where(whole, np.maximum(fit, 1.0), np.nan),
        "max_num_seqs": replica.calibration.max_sequences * replica.dp,
    }
    if replica.deployments[0].mode == "colocated" and replica.deployments[0].kv_cache:
        verified = lengths.output * replica.verified_tokens
        tokens = lengths.output / (lengths.uncached * replica.tokens_per_step + verified)
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


def _binding(loop: Loop, objectives: Objectives) -> NDArray[np.int64]:
    tpot = -1.0 if objectives.tpot_s is None else loop.step_s / objectives.tpot_s
    ttft = -1.0 if objectives.ttft_s is None else loop.ttft_s / objectives.ttft_s
    return np.where(np.asarray(tpot) >= ttft, BOUNDS.index("tpot"), BOUNDS.index("ttft"))
