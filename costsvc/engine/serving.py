"""Steady state of a replica: how many sequences run, how long a step takes, what a request costs in time."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.attention import Floats
from costsvc.engine.loop import Loop, LoopPlan, loop_batch, prompt_batch
from costsvc.engine.memory import Lengths
from costsvc.engine.replica import Replica
from costsvc.engine.rows import INPUTS, numbers_of, plan_rows
from costsvc.engine.search import LIMITS, Array
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
        uncached=traffic.uncached_input_tokens,
        cached=traffic.cached_input_tokens,
        output=traffic.output_tokens,
        shared=traffic.shared_cached_tokens,
        input_cv=traffic.input_cv,
        output_cv=traffic.output_cv,
        context_limit=traffic.context_limit_tokens,
        length_correlation=traffic.length_correlation,
    )


@dataclass(frozen=True, slots=True)
class Solution:
    """The largest concurrencies that meet every bound, and costs. Arrays are (layouts, points).

    What else follows from them is computed where it is asked for: searches and prices ask for thousands of costs, and
    for hardly any states.

    `least_gpu_s` is accelerator-seconds per request, and where no concurrency meets the bounds that of one sequence
    alone, which misses them; NaN where not even one fits into the memory. `bound` indexes `BOUNDS`.
    """

    plan: LoopPlan
    sequences: Array
    least_gpu_s: Array
    bound: Array

    def some(self, layouts: slice | list[int], points: slice) -> "Solution":
        """Some layouts and points of it."""
        return Solution(
            plan=self.plan.some(layouts, points),
            sequences=self.sequences[layouts, points],
            least_gpu_s=self.least_gpu_s[layouts, points],
            bound=self.bound[layouts, points],
        )

    @property
    def limits(self) -> dict[str, Array]:
        """Concurrency that each bound but latency allows; only steps that prompts share have to hold these."""
        rows, reading = self.plan.rows, self.plan.reading
        limits = LIMITS if reading.keeps_cache and not reading.is_split else LIMITS - 1
        return {name: rows[..., place - LIMITS] for place, name in enumerate(BOUNDS[:limits])}

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Where one sequence fits into the memory."""
        return np.asarray(~np.isnan(self.limits["memory"]))

    @property
    def meets(self) -> NDArray[np.bool_]:
        """Where some concurrency meets every bound."""
        return np.asarray(~np.isnan(self.sequences))

    @property
    def request_gpu_s(self) -> Array:
        """Accelerator-seconds per request, NaN where no concurrency meets the bounds."""
        return np.where(self.meets, self.least_gpu_s, np.nan)

    def gpu_s(self, sequences: Array) -> Array:
        """Accelerator-seconds per request with so many sequences running, both pools together."""
        plan = self.plan
        decode_s = plan.steps_s(sequences) * plan.number("output") / sequences
        return plan.number("gpus") * (decode_s + plan.number("prefill_s"))

    @property
    def requests_per_s(self) -> Array:
        """Saturated rate of a replica; see `least_gpu_s` for where no concurrency meets the bounds."""
        return 1.0 / (self.least_gpu_s / self.plan.number("gpus") - self.plan.number("prefill_s"))

    def state(self) -> SteadyState:
        """The loop there, with its rates."""
        loop = self.plan.at(self.sequences)
        decode_s = loop.step_s * self.plan.number("output") / self.sequences
        return SteadyState(
            sequences=self.sequences,
            bound=self.bound.astype(np.int64),
            limits=self.limits,
            loop=loop,
            requests_per_s=1.0 / decode_s,
            request_gpu_s=self.plan.number("gpus") * (decode_s + loop.prefill_s),
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
    given = *numbers_of(lengths), extra_kv_bytes
    inputs = np.empty((INPUTS, *np.broadcast(replica.tp, *given).shape))
    _write(inputs, given)
    return _solution(replica, inputs, objectives, utilization_share)


def _write(inputs: Array, given: Sequence[Floats]) -> None:
    """Inputs of the points of one request; a request of one point is written at once."""
    if all(isinstance(value, float) for value in given):
        inputs[:] = np.asarray(given)[:, None, None]
        return
    for place, value in enumerate(given):
        inputs[place] = value


def _solution(replica: Replica, inputs: Array, objectives: Objectives, utilization_share: float) -> Solution:
    plan = plan_rows(replica, inputs, utilization_share)
    sequences, least_gpu_s, bound = plan.most(objectives)
    return Solution(plan=plan, sequences=sequences, least_gpu_s=least_gpu_s, bound=bound)


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
        One or several points of each.

    Returns
    -------
    tuple
        The solution of all, and which points of it are each request's.
    """
    counts = [np.size(one.uncached) for one in requests]
    ends = list(accumulate(counts))
    places = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    inputs = np.empty((INPUTS, len(replica.deployments), ends[-1]))
    for lengths, more_bytes, place in zip(requests, extra_kv_bytes or repeat(0.0), places, strict=False):
        _write(inputs[:, :, place], (*numbers_of(lengths), more_bytes))
    return _solution(replica, inputs, objectives, utilization_share), places


def breakdown(replica: Replica, lengths: Lengths, state: SteadyState) -> tuple[StepTime, StepTime]:
    """Terms of the decode-only and of the mixed (or prefill-pool) step at a state."""
    decode = step_time(replica, loop_batch(replica, lengths, state.sequences, 0.0))
    if replica.deployments[0].mode == "disaggregated":
        budget = replica.calibration.step_token_budget_tokens
        return decode, step_time(replica, prompt_batch(replica, lengths, budget))
    mixed = loop_batch(replica, lengths, state.sequences, state.loop.mixed_prefill)
    return decode, step_time(replica, mixed)
