"""The rows of a replica: what the loop costs and where its concurrency ends, under many lengths."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final

import numpy as np

from costsvc.engine.attention import Floats
from costsvc.engine.loop import LoopPlan, LoopRow, loop_row, step_token_limit
from costsvc.engine.memory import Lengths, MemoryBudget, memory_budget, sequence_bytes, sequences_that_fit
from costsvc.engine.recording import Recorder
from costsvc.engine.replica import PerLayout, Replica, once_per_replica
from costsvc.engine.search import LIMITS, Array, Reading
from costsvc.engine.tape import Tape

_OF_LENGTHS: Final = (
    "uncached",
    "cached",
    "output",
    "shared",
    "context_limit",
    "per_prompt",
    "input_cv",
    "output_cv",
    "length_correlation",
)
INPUTS: Final = len(_OF_LENGTHS) + 1
"""What a row is made of: `numbers_of` lengths, and memory that is added to each accelerator's cache."""

_ASKED: Final = "rows asked for"

numbers_of: Callable[[Lengths], tuple[Floats, ...]] = attrgetter(*_OF_LENGTHS)


def plan_rows(replica: Replica, inputs: Array, utilization_share: float) -> LoopPlan:
    """The loop of each layout and point, its limits at the end of each row.

    Formulas are run as they stand where they are asked for the first time, and recorded the second time: to record
    them takes as long as to run them some ten times, which pays where a case is asked for again and again.

    Parameters
    ----------
    inputs : (INPUTS, layouts, points) array
        Tokens, ratios and bytes as `INPUTS` has them.
    """
    if _ASKED not in replica.memo:
        replica.memo[_ASKED] = True
        row = _row(replica, inputs)
        return LoopPlan(row.rows(), row.reading, utilization_share)
    recorded = _recorded(replica)
    return LoopPlan(recorded.tape.play(inputs), recorded.reading, utilization_share)


def concurrency_limits(replica: Replica, lengths: Lengths, budget: MemoryBudget) -> dict[str, Floats]:
    """Concurrency that each bound but latency allows, continuous. [sequences]"""
    fit = sequences_that_fit(replica, budget, lengths)
    whole = sequence_bytes(replica, lengths.context_limit) <= budget.kv_bytes
    limits: dict[str, Floats] = {
        "memory": np.where(whole, np.maximum(fit, 1.0), np.nan),
        "max_num_seqs": replica.calibration.max_sequences * replica.dp,
    }
    if replica.deployments[0].mode == "colocated" and replica.deployments[0].kv_cache:
        verified = lengths.output * replica.verified_tokens
        tokens = lengths.output / (lengths.uncached * replica.tokens_per_step + verified)
        limits["step_tokens"] = step_token_limit(replica) * tokens
    return limits


def _row(replica: Replica, inputs: Iterable[Any]) -> LoopRow:
    """The row at inputs, be they arrays or symbols."""
    *of_lengths, extra_kv_bytes = inputs
    named = dict(zip(_OF_LENGTHS, of_lengths, strict=True))
    lengths = Lengths(prompt_unit=named.pop("per_prompt"), **named)
    budget = memory_budget(replica)
    with_extra = replace(budget, kv_bytes=budget.kv_bytes + extra_kv_bytes)
    limits = concurrency_limits(replica, lengths, with_extra).values()
    unlimited = [np.inf] * (LIMITS - len(limits))
    row = loop_row(replica, lengths)
    return replace(row, pieces=(*row.pieces, *limits, *unlimited))


@dataclass(frozen=True, slots=True)
class _Recorded(PerLayout):
    """The tape that makes the rows of a replica, and how they are read."""

    tape: Tape
    reading: Reading

    def some(self, layouts: list[int]) -> "_Recorded":
        """That of some layouts."""
        return replace(self, tape=self.tape.some(layouts))


@once_per_replica
def _recorded(replica: Replica) -> _Recorded:
    recorder = Recorder(INPUTS, len(replica.deployments))
    row = _row(replica, recorder.symbols)
    return _Recorded(recorder.tape(row.values), row.reading)
