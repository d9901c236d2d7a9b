"""Where a step lies under the roofs of one accelerator: what it computes, what it moves, how fast it does."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from costsvc.engine.attention import Floats, decode_visible_tokens, mean_visible_tokens
from costsvc.engine.loop import loop_batch, prompt_batch
from costsvc.engine.memory import Lengths
from costsvc.engine.parameters import distinct_experts
from costsvc.engine.replica import Replica
from costsvc.engine.serving import SteadyState
from costsvc.engine.step import Batch, step_time

FLOP_PER_PARAMETER: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork:
    """One step of one accelerator: what it reaches, what it moves, how long it takes. [FLOP/s], [B], [s]"""

    flops_per_s: float
    moved_bytes: float
    step_s: float

    @property
    def flops(self) -> float:
        """What it computes. [FLOP]"""
        return self.flops_per_s * self.step_s

    @property
    def flop_per_byte(self) -> float:
        """Arithmetic intensity. [FLOP/B]"""
        return self.flops / self.moved_bytes


def decode_work(replica: Replica, lengths: Lengths, state: SteadyState) -> StepWork:
    """A step that only decodes, at the running concurrency."""
    return _work(replica, loop_batch(replica, lengths, state.sequences, 0.0))


def prefill_work(replica: Replica, lengths: Lengths) -> StepWork:
    """A step full of prompt tokens and nothing else."""
    tokens = np.minimum(lengths.uncached, replica.calibration.step_token_budget_tokens)
    return _work(replica, prompt_batch(replica, lengths, tokens))


def _work(replica: Replica, batch: Batch) -> StepWork:
    """All stages of one accelerator's share: a stage's work takes its stage's part of the step.

    Where tokens are proposed it is the verifying pass, without the draft's own.
    """
    ranks = replica.dp * replica.pp
    tokens = (batch.decode * replica.verified_tokens + batch.prefill) / ranks
    sampled = batch.sampled + batch.decode * (replica.verified_tokens - 1.0)
    plan = replica.deployments[0].weights
    dense = replica.attention_parameters + replica.ffn_parameters
    flops = FLOP_PER_PARAMETER * (tokens * dense + sampled / ranks * replica.head_parameters)
    moved = replica.attention_parameters * plan.attention.value_bytes
    moved = moved + replica.ffn_parameters * plan.ffn.value_bytes
    moved = moved + replica.head_parameters * plan.embedding.value_bytes
    for group in replica.expert_groups:
        visits = tokens * replica.dp * group.ffn.experts_per_token
        touched = distinct_experts(group.ffn, tokens * replica.dp, replica.calibration.expert_evenness_ratio)
        own = group.stage_layers * group.expert_parameters / (replica.tp * replica.dp)
        flops = flops + FLOP_PER_PARAMETER * visits * own
        moved = moved + touched * own * plan.experts.value_bytes
    attention_flops, attention_bytes = _attention(replica, batch)
    time = step_time(replica, batch)
    step_s = np.asarray(time.total_s - time.draft_s) / replica.pp
    return StepWork(
        flops_per_s=_first((flops + attention_flops) / step_s),
        moved_bytes=_first(moved + attention_bytes),
        step_s=_first(step_s),
    )


def _attention(replica: Replica, batch: Batch) -> tuple[Floats, Floats]:
    """Scores and sums, and the cache that is read: decode's for each sequence, prefill's once. [FLOP], [B]"""
    ranks = replica.dp * replica.pp
    decode, prefill = batch.decode / ranks, batch.prefill / ranks
    flops, moved = np.zeros_like(replica.tp), np.zeros_like(replica.tp)
    for group in replica.attention_groups:
        attention, layers = group.attention, group.stage_layers
        seen = decode_visible_tokens(attention, batch.decode_first, batch.decode_last)
        context = (batch.decode_first + batch.decode_last) / 2
        flops = (
            flops
            + layers * decode * replica.verified_tokens * attention.decode_flops(seen, context) / replica.tp
        )
        read = attention.read_values(seen, context) * group.kv_share * replica.kv.value_bytes
        moved = moved + layers * decode * read
        seen = mean_visible_tokens(attention, batch.prefill_first, batch.prefill_last)
        context = (batch.prefill_first + batch.prefill_last) / 2
        flops = flops + layers * prefill * attention.prefill_flops(seen, context) / replica.tp
        held = attention.kv_values(batch.prefill_last) * group.kv_share * replica.kv.value_bytes
        moved = moved + layers * np.where(prefill > 0, held, 0.0)
    return flops, moved


def _first(value: object) -> float:
    return float(np.ravel(np.asarray(value, dtype=np.float64))[0])
