"""The serving loop at a given concurrency: steps that decode, steps that carry prompts too, and waiting."""

from dataclasses import dataclass
from typing import Final, TypeGuard

import numpy as np

from costsvc.engine.attention import Floats
from costsvc.engine.memory import Lengths, sequence_bytes
from costsvc.engine.replica import Replica
from costsvc.engine.search import (
    HOST_STEPS,
    LOOP,
    Array,
    Reading,
    loop_states,
    most_sequences,
    steps_s,
)
from costsvc.engine.specs import Objectives
from costsvc.engine.step import Batch, StepPlan, step_time

_BLOCK_AXES: Final = 3


@dataclass(frozen=True, slots=True)
class Loop:
    """The serving loop at a given concurrency. Arrays are (layouts, points).

    `step_s` is the mean time of a step over the tokens that it yields to a sequence: time per output token.
    `mixed_share` of the steps carry `mixed_prefill` prompt tokens; the rest only decode. In disaggregated
    deployments none do, and `prefill_s` is the prefill pool's time for one prompt, transfer included.
    `prefill_step_s` is a mixed step without its decode tokens, `ttft_unloaded_s` the first token of one prompt
    on an idle replica, prefilled in chunks of the token budget, `sold_step_s` a step with the sequences that
    the utilization sold leaves. [s]
    """

    step_s: Array
    mixed_step_s: Array
    decode_step_s: Array
    mixed_share: Array
    mixed_prefill: Array
    ttft_s: Array
    prefill_step_s: Array
    ttft_unloaded_s: Array
    sold_step_s: Array
    prefill_s: Array
    transfer_s: Array


@dataclass(frozen=True, slots=True)
class LoopPlan:
    r"""The loop of a deployment under lengths, ready for many concurrencies.

    While each of B sequences makes its O tokens, B prompts of I tokens enter: whole where they come singly,
    several in a step where they come faster than steps, never more than the token budget of a step.
    Of the steps :math:`f = I B / (P O)` are mixed, and :math:`T = f T_{mix} + (1 - f) T_{dec}`.
    Where a step yields E tokens to each sequence, a request takes O / E steps, and E times as many tokens
    arrive in each.
    Where prefill has a pool of its own, of the same layout, its steps are full and the decode pool's have none.
    """

    rows: Array
    reading: Reading
    utilization_share: float

    def some(self, layouts: slice | list[int], points: slice) -> "LoopPlan":
        """The plan of some layouts and points."""
        rows = np.ascontiguousarray(self.rows[layouts, points])
        return LoopPlan(rows, self.reading, self.utilization_share)

    def at(self, sequences: Array) -> Loop:
        """The loop with so many sequences running. (layouts, points)"""
        return Loop(*loop_states(self.rows, self.reading, self._wide(sequences), self.utilization_share))

    def steps_s(self, sequences: Array) -> Array:
        """Time per output token alone with so many sequences running. (layouts, points) [s]"""
        return steps_s(self.rows, self.reading, self._wide(sequences))

    def most(self, objectives: Objectives) -> Array:
        """Largest concurrencies that keep the objectives, and costs: see `search.most_sequences`."""
        tpot_s = np.inf if objectives.tpot_s is None else objectives.tpot_s
        ttft_s = np.inf if objectives.ttft_s is None else objectives.ttft_s
        return most_sequences(self.rows, self.reading, tpot_s, ttft_s, self.utilization_share)

    def number(self, name: str) -> Array:
        """One of `search.LOOP`. (layouts, points)"""
        return self.rows[..., LOOP.index(name)]

    def _wide(self, sequences: Array) -> Array:
        """One number for each layout and point."""
        shape = self.rows.shape[:2]
        return np.ascontiguousarray(sequences if sequences.shape == shape else sequences + np.zeros(shape))


@dataclass(frozen=True, slots=True)
class LoopRow:
    """What stands in the row of a replica under lengths, in its order, and how it is read.

    `pieces` of three axes, (layouts, 1, numbers), follow from the layouts alone; any other is one number.
    """

    reading: Reading
    pieces: tuple[Floats, ...]

    @property
    def values(self) -> list[Floats]:
        """The numbers one by one."""
        return [
            one
            for piece in self.pieces
            for one in (np.moveaxis(piece, -1, 0) if _is_block(piece) else (piece,))
        ]

    def rows(self) -> Array:
        """The numbers side by side. (layouts, points, numbers)"""
        single = [piece for piece in self.pieces if not _is_block(piece)]
        many = sum(piece.shape[2] - 1 for piece in self.pieces if _is_block(piece))
        shape = np.broadcast_shapes(*{np.shape(piece) for piece in single})
        rows = np.empty((*shape, len(self.pieces) + many))
        place = 0
        for piece in self.pieces:
            if _is_block(piece):
                rows[..., place : place + piece.shape[2]] = piece
                place += piece.shape[2]
            else:
                rows[..., place] = piece
                place += 1
        return rows


def loop_row(replica: Replica, lengths: Lengths) -> LoopRow:
    """The loop of a replica under lengths, as `search.Reading` reads it."""
    sending_s: Floats = 0.0
    full_s: Floats = 0.0
    prefill_s: Floats = 0.0
    alone_s: Floats = 0.0
    limit, calibration = step_token_limit(replica), replica.calibration
    is_split, keeps_cache = replica.deployments[0].mode == "disaggregated", replica.deployments[0].kv_cache
    if is_split:
        limit = calibration.step_token_budget_tokens + 0.0 * limit
        full_s = step_time(replica, prompt_batch(replica, lengths, limit)).total_s
        sending_s = transfer_s(replica, lengths)
        prefill_s = lengths.uncached / step_token_limit(replica) * full_s + sending_s / replica.dp
    if is_split or not keeps_cache:
        alone_s = ttft_unloaded_s(replica, lengths)
    of_loop = (
        limit,
        lengths.uncached,
        lengths.uncached / lengths.output * replica.tokens_per_step,
        lengths.per_prompt,
        lengths.resident,
        calibration.ttft_floor_s,
        full_s,
        prefill_s,
        alone_s,
        calibration.prompt_gathering_share,
        sending_s,
        lengths.output,
        replica.gpus,
    )
    step = StepPlan(replica, loop_batch(replica, lengths, 1.0, 0.0))
    own, fixed, numbers = step.numbers(len(LOOP))
    reading = Reading(own, own, 0.0, keeps_cache, is_split)
    if step.draft is None:
        return LoopRow(reading, (*of_loop, fixed, *numbers))
    draft, drafted, more = step.draft.numbers(len(LOOP) + fixed.shape[-1] + len(numbers))
    drafted = drafted.copy()
    drafted[..., HOST_STEPS] = 0.0
    reading = reading._replace(draft=draft, draft_passes=replica.verified_tokens - 1.0)
    return LoopRow(reading, (*of_loop, fixed, *numbers, drafted, *more))


def plan_loop(replica: Replica, lengths: Lengths, utilization_share: float) -> LoopPlan:
    """The loop of a replica under lengths. Prompts wait as at that share of the rate. [1]"""
    row = loop_row(replica, lengths)
    return LoopPlan(row.rows(), row.reading, utilization_share)


def run_loop(replica: Replica, lengths: Lengths, sequences: Floats, utilization_share: float) -> Loop:
    """The loop with `sequences` running."""
    return plan_loop(replica, lengths, utilization_share).at(np.asarray(sequences, dtype=np.float64))


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


def step_token_limit(replica: Replica) -> Array:
    """Tokens that one iteration of the whole replica may carry. [token]"""
    return replica.calibration.step_token_budget_tokens * replica.dp * replica.pp


def prompt_batch(replica: Replica, lengths: Lengths, tokens: Floats) -> Batch:
    """A step of `tokens` prompt tokens per engine process and nothing else."""
    ranks, spread = replica.dp * replica.pp, lengths.prefill_spread_ratio
    sampled = ranks * tokens / lengths.per_prompt
    return Batch(0.0, 0.0, 1.0, tokens * ranks, lengths.cached * spread, lengths.prompt * spread, sampled)


def ttft_unloaded_s(replica: Replica, lengths: Lengths) -> Floats:
    """First token of one prompt on an idle replica, prefilled in chunks of the token budget. [s]

    In disaggregated deployments the cache's transfer and the first decode step are on the way.
    """
    prefill_s = replica.calibration.ttft_floor_s + prompt_s(replica, lengths, lengths.uncached)
    if replica.deployments[0].mode == "colocated":
        return prefill_s
    first_s = step_time(replica, loop_batch(replica, lengths, 1.0, 0.0)).total_s
    return prefill_s + transfer_s(replica, lengths) + first_s


def prompt_s(replica: Replica, lengths: Lengths, tokens: Floats) -> Floats:
    """Prefill of so many prompt tokens on each idle engine process, in steps of at most the token budget. [s]"""
    chunk = np.minimum(tokens, replica.calibration.step_token_budget_tokens)
    return tokens / chunk * step_time(replica, prompt_batch(replica, lengths, chunk)).total_s


def transfer_s(replica: Replica, lengths: Lengths) -> Floats:
    """Sending a prompt's cache to the decode pool, each accelerator its share over its own port. [s]

    Fixed state is sent once a prompt, so its uncached tokens carry it.
    """
    state_bytes = sequence_bytes(replica, 0.0)
    once = state_bytes * (lengths.uncached / lengths.per_prompt)
    return (
        sequence_bytes(replica, lengths.prompt) - state_bytes + once
    ) / replica.calibration.network_bytes_per_s


def _is_block(piece: Floats) -> TypeGuard[Array]:
    return isinstance(piece, np.ndarray) and piece.ndim == _BLOCK_AXES
