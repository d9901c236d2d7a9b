"""One evaluation of the serving loop as a row: the columns, computed alike on formulas and on arrays.

The loop is written out here term by term, in the order of `engine.serving.run_loop`; the time of a step,
memory and transfers are the engine's own functions. A workbook is held against the engine as it is written.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np

from costsvc.engine.formulas import mixed_prefill_tokens, prompt_load_share, queue_factor
from costsvc.engine.loop import loop_batch, prompt_batch, prompt_s, step_token_limit, transfer_s
from costsvc.engine.memory import Lengths, memory_budget, sequence_bytes, sequences_that_fit
from costsvc.engine.replica import Replica
from costsvc.engine.specs import Objectives
from costsvc.engine.step import StepTime, step_time
from costsvc.quoting.answer.plain import number_exact
from costsvc.quoting.audit.record import plain

TERMS: Final = tuple(one.name for one in fields(StepTime))
Put = Callable[[str, Any], Any]
"""Keeps a column's value and gives back what later columns refer to it by."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a row is of: a replica under lengths, with so many sequences running."""

    replica: Replica
    lengths: Lengths
    objectives: Objectives
    utilization_share: Any

    @property
    def is_split(self) -> bool:
        """Whether prefill has a pool of its own."""
        return self.replica.deployments[0].mode == "disaggregated"


def ceiling_columns(at: Evaluation, put: Put) -> Any:
    """Concurrency that memory, the scheduler and the token budget of a step allow. [sequences]"""
    replica, lengths = at.replica, at.lengths
    budget = memory_budget(replica)
    fit = put("limit_memory", _whole(at, budget, plain_(sequences_that_fit(replica, budget, lengths))))
    most = replica.calibration.max_sequences * plain(replica.dp)
    limits = [fit, most]
    if not at.is_split and replica.deployments[0].kv_cache:
        tokens = plain(step_token_limit(replica)) * (lengths.output / (lengths.uncached + lengths.output))
        limits.append(put("limit_step_tokens", tokens))
    ceiling = limits[0]
    for limit in limits[1:]:
        ceiling = np.minimum(ceiling, limit)
    return put("ceiling", ceiling)


def loop_columns(at: Evaluation, sequences: Any, put: Put) -> Any:
    """The loop with `sequences` running, and what a request then costs. [accelerator-second]"""
    return _pools(at, sequences, put) if at.is_split else _together(at, sequences, put)


def _together(at: Evaluation, sequences: Any, put: Put) -> Any:
    replica, lengths = at.replica, at.lengths
    room = put("room_tokens", np.maximum(plain(step_token_limit(replica)) - sequences, 1.0))
    arriving = lengths.uncached * sequences / lengths.output
    dp = plain(replica.dp)
    least = np.minimum(lengths.uncached, room / dp)
    gathering = replica.calibration.prompt_gathering_share
    prefill = put("prefill_tokens", mixed_prefill_tokens(arriving, lengths.uncached, room, dp, gathering))
    share = put("mixed_share", np.minimum(arriving / prefill, 1.0))
    decode_s = _step(at, "decode", loop_batch(replica, lengths, sequences, 0.0), put)
    mixed_s = _step(at, "mixed", loop_batch(replica, lengths, sequences, prefill), put)
    step_s = put("step_s", share * mixed_s + (1.0 - share) * decode_s)
    own_s = np.maximum(lengths.uncached * dp / room, 1.0) * mixed_s
    if number_exact(replica.pp) > 1:
        own_s = np.maximum(own_s, plain_(prompt_s(replica, lengths, lengths.uncached)))
    wait_s = replica.calibration.ttft_floor_s + step_s / 2
    load = put("prompt_load_share", prompt_load_share(at.utilization_share, arriving, room, mixed_s, step_s))
    wait_s = wait_s + queue_factor(load, sequences) * least / room * own_s
    ttft_s = put("ttft_s", wait_s + own_s)
    _excess(at, step_s, ttft_s, put)
    return put("request_gpu_s", plain(replica.gpus) * (step_s * lengths.output / sequences))


def _pools(at: Evaluation, sequences: Any, put: Put) -> Any:
    replica, lengths = at.replica, at.lengths
    budget = replica.calibration.step_token_budget_tokens
    step_s = put("step_s", _step(at, "decode", loop_batch(replica, lengths, sequences, 0.0), put))
    full_s = _step(at, "mixed", prompt_batch(replica, lengths, budget), put)
    sending_s = put("transfer_s", plain_(transfer_s(replica, lengths)))
    prefill_s = put("prefill_s", lengths.uncached / plain(step_token_limit(replica)) * full_s + sending_s)
    chunk = np.minimum(lengths.uncached, budget)
    alone = (
        lengths.uncached / chunk * plain_(step_time(replica, prompt_batch(replica, lengths, chunk)).total_s)
    )
    one = plain_(step_time(replica, loop_batch(replica, lengths, 1.0, 0.0)).total_s)
    alone_s = alone + replica.calibration.ttft_floor_s + sending_s + one
    ttft_s = put("ttft_s", alone_s + queue_factor(at.utilization_share, sequences) * prefill_s)
    _excess(at, step_s, ttft_s, put)
    return put("request_gpu_s", plain(replica.gpus) * (step_s * lengths.output / sequences + prefill_s))


def _step(at: Evaluation, name: str, batch: Any, put: Put) -> Any:
    """A step's terms, a column each, and their sum. [s]"""
    time = step_time(at.replica, batch)
    terms = {term: put(f"{name}_{term}", plain_(getattr(time, term))) for term in TERMS}
    return put(f"{name}_step_s", replace(time, **terms).total_s)


def _excess(at: Evaluation, step_s: Any, ttft_s: Any, put: Put) -> None:
    """How far the slower latency is over its objective; at most 0 where both are kept. [1]"""
    tpot, ttft = at.objectives.tpot_s, at.objectives.ttft_s
    over = -1.0 if tpot is None else step_s / tpot - 1.0
    if ttft is not None:
        over = np.maximum(over, ttft_s / ttft - 1.0)
    put("excess", over)


def _whole(at: Evaluation, budget: Any, fit: Any) -> Any:
    held = sequence_bytes(at.replica, at.lengths.context_limit) <= budget.kv_bytes
    return np.where(held, np.maximum(fit, 1.0), np.nan)


def plain_(value: Any) -> Any:
    """An array of (1, points) as (points,); a formula as it is."""
    if isinstance(value, np.ndarray) and value.size > 1:
        return value.reshape(-1)
    return plain(value)
