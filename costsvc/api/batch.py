"""Thousands of quotes in one call, streamed as they are made."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from litestar import Request, post
from litestar.di import NamedDependency
from litestar.exceptions import HTTPException
from litestar.response import Stream

from costsvc.api.bodies import MAX_BATCH_BYTES
from costsvc.api.door import HEAVY
from costsvc.api.formats import FORMATS, Format, View, presented
from costsvc.api.openapi import SHOWN_AS, NoParameters, batch_body, documented, query_parameters
from costsvc.api.rendering import revision_headers
from costsvc.api.service import Service
from costsvc.api.viewer import catalog_for
from costsvc.quoting.batch import (
    BEFORE,
    Given,
    batch_table,
    priced,
    rows_of_csv,
    rows_of_json,
    rows_of_xlsx,
)
from costsvc.quoting.flat import QUOTE_COLUMNS
from costsvc.quoting.given import refuse_unknown
from costsvc.quoting.tables.as_csv import csv_header, csv_row
from costsvc.quoting.tables.table import Row
from costsvc.quoting.workbooks import save_xlsx

_COLUMNS: Final = (*BEFORE, *QUOTE_COLUMNS)
_OBJECTS: Final = json.JSONEncoder(allow_nan=False, ensure_ascii=False)
_CHUNK_ROWS: Final = 20
_CHUNK_BYTES: Final = 65_536
_CSV, _XLSX, _JSON = FORMATS["csv"], FORMATS["xlsx"], FORMATS["json"]
_READERS: Final[Mapping[str, tuple[Format, Callable[[bytes], list[Given]]]]] = {
    _JSON.media_type: (_JSON, rows_of_json),
    _CSV.media_type: (_CSV, rows_of_csv),
    _XLSX.media_type: (_XLSX, rows_of_xlsx),
}
_VIEW: Final = View(table=batch_table)


@post(
    "/quotes/batch",
    status_code=200,
    opt=HEAVY,
    request_max_body_size=MAX_BATCH_BYTES,
    summary="Up to 10,000 quotes, a row each",
    operation_class=documented(
        "Batch", parameters=query_parameters(NoParameters, more=SHOWN_AS), body=batch_body(tuple(_READERS))
    ),
)
async def post_batch(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Stream:
    """Price each row; one that cannot be priced says why in its `error`."""
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent not in _READERS:
        raise HTTPException(
            status_code=415, detail=f"Content-Type is '{sent}'; send one of {', '.join(_READERS)}."
        )
    same, read = _READERS[sent]
    shown = presented(request, _VIEW)
    refuse_unknown(shown.given, ())
    accept = request.headers.get("accept", "*/*")
    wanted = shown.format if "format" in request.query_params or accept != "*/*" else same
    if wanted not in (_JSON, _CSV, _XLSX):
        raise HTTPException(status_code=406, detail="A batch is answered as json, csv or xlsx.")
    catalog = await catalog_for(request, service)
    body = await request.body()
    rows = await service.heavy.run(lambda: read(body))
    answered = priced(catalog, rows, service.today())
    pieces = _workbook(answered) if wanted is _XLSX else _lines(answered, wanted)
    headers = {"Cache-Control": "no-store", **revision_headers(catalog)}
    return Stream(service.heavy.pieces(pieces), media_type=wanted.content_type, headers=headers)


def _lines(rows: Iterator[Row], wanted: Format) -> Iterator[bytes]:
    """CSV or JSON, some rows at a time."""
    chunks = iter(lambda: list(islice(rows, _CHUNK_ROWS)), [])
    if wanted is _CSV:
        yield csv_header(_COLUMNS).encode()
        for chunk in chunks:
            yield "".join(csv_row(_COLUMNS, row) for row in chunk).encode()
        return
    separator = '{"items":['
    for chunk in chunks:
        members = [{column.name: row.get(column.name) for column in _COLUMNS} for row in chunk]
        yield f"{separator}{','.join(map(_OBJECTS.encode, members))}".encode()
        separator = ","
    yield (f"{separator}]}}" if separator != "," else "]}").encode()


def _workbook(rows: Iterator[Row]) -> Iterator[bytes]:
    """A workbook on disk first, for its directory comes last; then its bytes."""
    with tempfile.TemporaryFile() as held:
        save_xlsx(batch_table(rows), held)
        held.seek(0)
        while chunk := held.read(_CHUNK_BYTES):
            yield chunk
