"""The serving loop at a given concurrency: steps that decode, steps that carry prompts too, and waiting."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.attention import Floats
from costsvc.engine.memory import Lengths, sequence_bytes
from costsvc.engine.replica import Replica
from costsvc.engine.step import Batch, StepPlan, step_time

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


def run_loop(replica: Replica, lengths: Lengths, sequences: Floats, utilization_share: float) -> Loop:
    """The loop with `sequences` running."""
    return loop_plan(replica, lengths, utilization_share).at(np.asarray(sequences, dtype=np.float64))


def loop_plan(replica: Replica, lengths: Lengths, utilization_share: float) -> "LoopPlan":
    """The loop of a deployment under lengths, ready for many concurrencies."""
    together = replica.deployments[0].mode == "colocated"
    return (_Together if together else _Pools)(replica, lengths, utilization_share)


class LoopPlan(Protocol):
    """What stays the same while the concurrency is searched."""

    def at(self, sequences: Array) -> Loop:
        """The loop with so many sequences running. (layouts, points)"""


class _Together:
    r"""One pool for both.

    While each of B sequences makes its O tokens, B prompts of I tokens enter: whole where they come singly,
    several in a step where they come faster than steps, never more than the token budget of a step.
    Of the steps :math:`f = I B / (P O)` are mixed, and :math:`T = f T_{mix} + (1 - f) T_{dec}`.
    """

    def __init__(self, replica: Replica, lengths: Lengths, utilization_share: float) -> None:
        self._replica, self._lengths, self._utilization_share = replica, lengths, utilization_share
        self._step = StepPlan(replica, loop_batch(replica, lengths, 1.0, 0.0))
        self._budget = step_token_limit(replica)
        self._arriving = np.asarray(lengths.uncached / lengths.output)

    def at(self, sequences: Array) -> Loop:
        uncached = self._lengths.uncached
        room = np.maximum(self._budget - sequences, 1.0)
        arriving = self._arriving * sequences
        prefill = np.minimum(np.maximum(arriving, np.minimum(uncached, room)), room)
        share = np.minimum(arriving / prefill, 1.0)
        both = np.stack((np.zeros_like(prefill), prefill))
        counts = loop_counts(self._replica, self._lengths, sequences, both)
        decode_s, mixed_s = np.asarray(self._step.total_s(*counts))
        step_s = share * mixed_s + (1.0 - share) * decode_s
        prompt_s = np.maximum(uncached / room, 1.0) * mixed_s
        waits = 1.0 + queue_factor(self._utilization_share * share, sequences)
        zero = np.zeros_like(step_s)
        return Loop(
            step_s=step_s,
            mixed_step_s=mixed_s,
            decode_step_s=decode_s,
            mixed_share=share,
            mixed_prefill=prefill,
            ttft_s=self._replica.calibration.ttft_floor_s + step_s / 2 + waits * prompt_s,
            prefill_s=zero,
            transfer_s=zero,
        )


class _Pools:
    """Decode pool alone, beside a prefill pool of the same layout whose steps are full."""

    def __init__(self, replica: Replica, lengths: Lengths, utilization_share: float) -> None:
        self._replica, self._lengths, self._utilization_share = replica, lengths, utilization_share
        self._step = StepPlan(replica, loop_batch(replica, lengths, 1.0, 0.0))
        budget = replica.calibration.step_token_budget_tokens
        self._full_s = np.asarray(step_time(replica, prompt_batch(replica, lengths, budget)).total_s)
        self._sending_s = transfer_s(replica, lengths)
        whole_s = lengths.uncached / step_token_limit(replica) * self._full_s
        self._prefill_s = np.asarray(whole_s + self._sending_s / replica.dp)
        self._alone_s = ttft_unloaded_s(replica, lengths)

    def at(self, sequences: Array) -> Loop:
        counts = loop_counts(self._replica, self._lengths, sequences, np.zeros_like(sequences))
        decode_s = np.asarray(self._step.total_s(*counts))
        zero = np.zeros_like(decode_s)
        waits = queue_factor(self._utilization_share, sequences)
        return Loop(
            step_s=decode_s,
            mixed_step_s=self._full_s + zero,
            decode_step_s=decode_s,
            mixed_share=zero,
            mixed_prefill=self._replica.calibration.step_token_budget_tokens + zero,
            ttft_s=self._alone_s + waits * self._prefill_s,
            prefill_s=self._prefill_s + zero,
            transfer_s=self._sending_s + zero,
        )


def loop_counts(
    replica: Replica, lengths: Lengths, sequences: Floats, prefill: Floats
) -> tuple[Floats, Floats, Floats]:
    """Decode, prompt and sampled tokens of one step; without a cache every sequence's prefix is recomputed."""
    if not replica.deployments[0].kv_cache:
        recomputed = sequences * lengths.resident + 0.0 * prefill
        return 0.0 * recomputed, recomputed, sequences + 0.0 * prefill
    return sequences, prefill, sequences + prefill / lengths.per_prompt


def loop_batch(replica: Replica, lengths: Lengths, sequences: Floats, prefill: Floats) -> Batch:
    """The batch of one step of the loop, with the contexts that its tokens see."""
    decode, tokens, sampled = loop_counts(replica, lengths, sequences, prefill)
    first, last = lengths.long_prompt, lengths.long_prompt + lengths.long_output
    if not replica.deployments[0].kv_cache:
        return Batch(decode, first, last, tokens, 0.0, lengths.resident, sampled)
    spread = lengths.prefill_spread_ratio
    return Batch(decode, first, last, tokens, lengths.cached * spread, lengths.prompt * spread, sampled)


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
