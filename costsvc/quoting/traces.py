"""What a recorded trace says: the hit rate that a cache of each size would have had."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from costsvc.engine.trace import HitCurve, Requests, hit_curve
from costsvc.errors import InvalidRequest
from costsvc.ingest.traces import Trace, read_trace
from costsvc.quoting.answer.plain import number
from costsvc.quoting.fitting import fitted_profile

_LADDER = (1, 2, 5)
_SMALLEST_BLOCKS = 100
_LARGEST_BLOCKS = 10**15


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


def whole_trace(
    lines: Iterable[bytes], *, block_tokens: int, capacities: Sequence[float] = ()
) -> dict[str, Any]:
    """Hit rates and a fitted profile of a trace that fits in memory, as the service answers them.

    Raises
    ------
    InvalidRequest
        A line is malformed, or the trace is too short for a profile.
    """
    read = read_trace(lines, block_tokens=block_tokens)
    parts = list(read.parts)
    hits = trace_hits(Trace(read.form, iter(parts)), block_tokens=block_tokens, capacities=capacities)
    return {
        "form": read.form,
        "requests": hits.requests,
        "block_tokens": block_tokens,
        "hits": [
            {
                "capacity_blocks": "inf" if row.capacity_blocks == inf else row.capacity_blocks,
                "hit_blocks_share": _known(row.hit_blocks_share),
                "hit_tokens_share": _known(row.hit_tokens_share),
            }
            for row in hits.rows
        ],
        "note": hits.note,
        "profile": fitted_profile(parts, block_tokens=block_tokens).model_dump(
            mode="json", exclude_unset=True
        ),
    }


def capacities_of(text: str | None) -> list[float]:
    """Capacities as a list with commas; none where nothing is asked.

    Raises
    ------
    InvalidRequest
        One is neither a whole number of blocks nor `inf`.
    """
    return [] if text is None else [_capacity(part.strip()) for part in text.split(",")]


def _capacity(text: str) -> float:
    if text.lower() == "inf":
        return inf
    if not (text.isascii() and text.isdigit()) or not 0 < int(text[:20]) <= _LARGEST_BLOCKS:
        raise InvalidRequest(
            f"capacity_blocks has '{text[:40]}'. Give whole numbers of blocks from 1, or inf, with commas.",
            field="capacity_blocks",
        )
    return float(text)


def _known(share: float | None) -> float | None:
    return None if share is None else number(share)


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
