"""What a recorded trace says: the hit rate that a cache of each size would have had."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from costsvc.engine.trace import HitCurve, Requests, hit_curve
from costsvc.ingest.traces import Trace

_LADDER = (1, 2, 5)
_SMALLEST_BLOCKS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class HitRow:
    """The share of blocks and of input tokens that a cache of `capacity_blocks` hits; None where unknown."""

    capacity_blocks: float | None
    hit_blocks_share: float | None
    hit_tokens_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceHits:
    """Hits by capacity, and a note where the trace itself cannot say them."""

    rows: tuple[HitRow, ...]
    requests: int
    note: str | None = None


def trace_hits(trace: Trace, *, block_tokens: int, capacities: Sequence[float] = ()) -> TraceHits:
    """Hit rates at the asked capacities, or at a ladder of them up to all blocks.

    Raises
    ------
    InvalidRequest
        A line is malformed, or there is no request.
    """
    if trace.form == "mooncake":
        curve = hit_curve(_with_blocks(trace), block_tokens=block_tokens)
        rows = [_row(curve, capacity) for capacity in capacities or _ladder(curve.distinct_blocks)]
        return TraceHits(rows=tuple(rows), requests=curve.requests)
    requests = prompt = cached = 0
    for part in trace.parts:
        requests += len(part.input_tokens)
        prompt += int(part.input_tokens.sum())
        cached += 0 if part.cached_tokens is None else int(part.cached_tokens.sum())
    if trace.form == "gateway":
        observed = HitRow(
            capacity_blocks=None,
            hit_blocks_share=None,
            hit_tokens_share=cached / prompt if prompt else None,
        )
        note = "The log says what was found in a cache of unknown size; for other sizes it has no blocks."
        return TraceHits(rows=(observed,), requests=requests, note=note)
    unknown = [
        HitRow(capacity_blocks=capacity, hit_blocks_share=None, hit_tokens_share=None)
        for capacity in capacities or (inf,)
    ]
    note = "This form records no prefixes, so its hit rates are unknown."
    return TraceHits(rows=tuple(unknown), requests=requests, note=note)


def _with_blocks(trace: Trace) -> Iterator[Requests]:
    return (part.requests for part in trace.parts if part.requests is not None)


def _row(curve: HitCurve, capacity: float) -> HitRow:
    blocks, tokens = curve.shares(capacity)
    return HitRow(capacity_blocks=capacity, hit_blocks_share=blocks, hit_tokens_share=tokens)


def _ladder(distinct_blocks: int) -> list[float]:
    """1, 2, 5, 10 and so on times the smallest capacity, below what holds everything; then unbounded."""
    steps: list[float] = []
    unit = _SMALLEST_BLOCKS
    while unit < distinct_blocks:
        steps += [float(unit * step) for step in _LADDER if unit * step < distinct_blocks]
        unit *= 10
    return [*steps, inf]
