"""A recorded trace, counted and forgotten: hit rates by cache size, and a profile of its traffic."""

from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final

from litestar import Request, Response, post
from litestar.di import NamedDependency
from litestar.exceptions import HTTPException
from pydantic import Field

from costsvc.api.door import HEAVY
from costsvc.api.openapi import documented, query_parameters, text_body
from costsvc.api.rendering import given_in_query, uncached
from costsvc.api.service import Service
from costsvc.ingest.entry import Strict
from costsvc.ingest.traces import LONGEST_LINE_BYTES
from costsvc.quoting.given import parse_filter
from costsvc.quoting.traces import capacities_of, whole_trace

MOST_TRACE_BYTES: Final = 100_000_000
_MOST_IN_MEMORY_BYTES: Final = 4_000_000
_TYPES: Final = (
    "application/x-ndjson",
    "application/jsonl",
    "application/json",
    "text/csv",
    "text/plain",
    "application/octet-stream",
)


class TraceParameters(Strict):
    """How a trace is counted."""

    block: int = Field(512, ge=1, le=1_000_000, description="Prompt tokens that one hash id stands for.")
    capacity_blocks: str | None = Field(
        None, max_length=10_000, description="Capacities to show, commas between, `inf` for unbounded."
    )


@post(
    "/traces",
    status_code=200,
    opt=HEAVY,
    summary="Hit rates and profile of a recorded trace",
    request_max_body_size=MOST_TRACE_BYTES,
    operation_class=documented(
        "Trace",
        parameters=query_parameters(TraceParameters),
        body=text_body(_TYPES),
        more_problems=(422,),
    ),
)
async def post_trace(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """Count a trace that is sent as JSON lines or CSV. Nothing of it is kept."""
    wanted = parse_filter(TraceParameters, given_in_query(request))
    capacities = capacities_of(wanted.capacity_blocks)
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent not in _TYPES:
        raise HTTPException(
            status_code=415, detail=f"Content-Type is '{sent}'; send one of {', '.join(_TYPES)}."
        )
    with SpooledTemporaryFile(_MOST_IN_MEMORY_BYTES) as kept:
        async for chunk in request.stream():
            kept.write(chunk)
        kept.seek(0)
        counted = await service.heavy.run(
            lambda: whole_trace(_lines(kept), block_tokens=wanted.block, capacities=capacities)
        )
    return uncached(request, service.catalog, counted)


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.readline(LONGEST_LINE_BYTES + 1), b"")
