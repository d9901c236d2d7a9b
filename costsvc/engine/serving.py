"""Steady state of a replica: how many sequences run, how long a step takes, what a request costs in time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.attention import Floats
from costsvc.engine.formulas import Array
from costsvc.engine.loop import Loop, LoopPlan, loop_batch, plan_loop, prompt_batch, step_token_limit
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


@dataclass(frozen=True, slots=True)
class Solution:
    """The largest concurrencies that meet every bound. Arrays are (layouts, points), limits (bounds, layouts, points).

    What follows from them is computed where it is asked for: searches and prices ask for thousands of costs, and for
    hardly any states.
    """

    plan: LoopPlan
    objectives: Objectives
    gpus: Array
    output_tokens: Array
    limit_sequences: Array
    sequences: Array

    def some(self, layouts: slice | list[int], points: slice) -> "Solution":
        """Some layouts and points of it."""
        return Solution(
            plan=self.plan.some(layouts, points),
            objectives=self.objectives,
            gpus=self.gpus[layouts],
            output_tokens=self.output_tokens[layouts, points],
            limit_sequences=self.limit_sequences[:, layouts, points],
            sequences=self.sequences[layouts, points],
        )

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Where one sequence fits into the memory."""
        return np.asarray(~np.isnan(self.limit_sequences[BOUNDS.index("memory")]))

    def gpu_s(self, sequences: Array) -> Array:
        """Accelerator-seconds per request with so many sequences running, both pools together."""
        decode_s = self.plan.steps_s(sequences) * self.output_tokens / sequences
        return self.gpus * (decode_s + self.plan.prefill_s)

    def request_gpu_s(self) -> Array:
        """Accelerator-seconds per request, NaN where no concurrency meets the bounds."""
        return self.gpu_s(self.sequences)

    def least_gpu_s(self) -> Array:
        """The same, and where the objectives cannot be kept that of one sequence alone, which misses them."""
        missed = np.isnan(self.sequences)
        if not missed.any():
            return self.request_gpu_s()
        return self.gpu_s(np.where(missed, np.minimum(self.limit_sequences.min(axis=0), 1.0), self.sequences))

    def state(self) -> SteadyState:
        """The loop there, with its rates."""
        loop, ceiling = self.plan.at(self.sequences), self.limit_sequences.min(axis=0)
        bound = self.limit_sequences.argmin(axis=0)
        slower = (self.sequences < ceiling) | (np.isnan(self.sequences) & ~np.isnan(ceiling))
        if slower.any():
            bound = np.where(slower, _binding(loop, self.objectives), bound)
        decode_s = loop.step_s * self.output_tokens / self.sequences
        return SteadyState(
            sequences=self.sequences,
            bound=np.asarray(bound),
            limits=dict(zip(BOUNDS, self.limit_sequences, strict=False)),
            loop=loop,
            requests_per_s=1.0 / decode_s,
            request_gpu_s=self.gpus * (decode_s + loop.prefill_s),
            prefill_replicas=loop.prefill_s / decode_s,
        )


def solution(
    replica: Replica,
    lengths: Lengths,
    objectives: Objectives,
    utilization_share: float,
    *,
    extra_kv_bytes: Floats = 0.0,
) -> Solution:
    """The largest concurrency that meets memory, scheduler and objectives.

    Parameters
    ----------
    extra_kv_bytes : float or array
        Added to each accelerator's cache memory: for marginal values, and negative where an idle prefix
        cache takes its share. [B]
    """
    budget = memory_budget(replica)
    if np.any(extra_kv_bytes):
        budget = replace(budget, kv_bytes=budget.kv_bytes + extra_kv_bytes)
    found = tuple(concurrency_limits(replica, lengths, budget).values())
    limits = np.empty((len(found), *np.broadcast(*found).shape))
    for place, limit in enumerate(found):
        limits[place] = limit
    plan = plan_loop(replica, lengths, utilization_share)
    return Solution(
        plan=plan,
        objectives=objectives,
        gpus=replica.gpus,
        output_tokens=np.broadcast_to(lengths.output, limits.shape[1:]),
        limit_sequences=limits,
        sequences=plan.most(objectives, limits.min(axis=0)),
    )


def solve(
    replica: Replica,
    lengths: Lengths,
    objectives: Objectives,
    utilization_share: float,
    *,
    extra_kv_bytes: Floats = 0.0,
) -> SteadyState:
    """The state at that concurrency; see `solution`."""
    return solution(replica, lengths, objectives, utilization_share, extra_kv_bytes=extra_kv_bytes).state()


def solve_together(
    replica: Replica,
    requests: Sequence[Lengths],
    objectives: Objectives,
    utilization_share: float,
    extra_kv_bytes: Sequence[float] | None = None,
) -> tuple[Solution, list[slice]]:
    """Several requests on the same layouts, each with its own extra memory, in one evaluation.

    Parameters
    ----------
    requests : sequence of Lengths
        Points of each; the spread of lengths is that of the first.

    Returns
    -------
    tuple
        The solution of all, and which points of it are each request's.
    """
    counts = [np.size(one.uncached) for one in requests]
    ends = np.cumsum(counts).tolist()
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
    extra = 0.0 if extra_kv_bytes is None else joined(extra_kv_bytes)
    return solution(replica, together, objectives, utilization_share, extra_kv_bytes=extra), places


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
