"""Stored quotes: kept by the holder of a key, and the same bytes for ever."""

import json
from collections.abc import Mapping
from datetime import date
from hashlib import blake2b
from typing import Any, Final

from litestar import Request, Response, post, route
from litestar.concurrency import sync_to_thread
from litestar.di import NamedDependency
from litestar.exceptions import HTTPException
from litestar.params import FromPath
from pydantic import Field

from costsvc.api.auth import needs, owner_of
from costsvc.api.bodies import json_object
from costsvc.api.door import HEAVY
from costsvc.api.formats import (
    FORMATS,
    Presentation,
    View,
    presented,
    suffix_of,
    table_view,
    with_suffixes,
)
from costsvc.api.openapi import (
    READ,
    SHOWN_AS,
    SHOWN_FIELD,
    NoParameters,
    body_of,
    documented,
    query_parameters,
)
from costsvc.api.rendering import VARY, given_in_query
from costsvc.api.service import Service
from costsvc.db.keys import ApiKey
from costsvc.db.quotes import Reader, StoredQuote
from costsvc.db.snapshot import Catalog
from costsvc.quoting.comparing import compare_quotes, difference_table
from costsvc.quoting.flat import quote_row, quote_table
from costsvc.quoting.given import parse_filter, refuse_unknown
from costsvc.quoting.request import QuoteRequest, parse_request
from costsvc.quoting.stored import StoredFilter, listed_quote, search_of, store_quote, stored_table
from costsvc.quoting.tables.as_text import FIELDS, value_of
from costsvc.quoting.tables.table import Table, texts
from costsvc.quoting.workbooks import quote_workbook

_KEYED: Final = (401,)
_STORED: Final = (401, 403, 409, 422)
_LONGEST_IDEMPOTENCY_KEY: Final = 200
_FOR_EVER: Final = {"Cache-Control": "private, max-age=31536000, immutable", "Vary": VARY}
_NOT_KEPT: Final = {"Cache-Control": "private, no-cache", "Vary": VARY}
_TXT: Final = "txt"


def _row_of(kept: Mapping[str, Any]) -> dict[str, Any]:
    head = {name: kept[name] for name in ("id", "label", "stored_at")}
    return {**head, **quote_row(kept["quote"])}


def _table_of(kept: Mapping[str, Any]) -> Table:
    return quote_table([_row_of(kept)], before=texts("id", "label", "stored_at"))


def _value_of(kept: Mapping[str, Any], field: str | None) -> str:
    return value_of(_row_of(kept), kept["quote"], field)


class _ToKeep(QuoteRequest):
    """A quote's body, and what the quote is to be found by."""

    label: str = Field("", max_length=200, description="What to find it by.")


_SHOWN: Final = query_parameters(NoParameters, more=(*SHOWN_AS, *SHOWN_FIELD))


_ONE: Final = View(table=_table_of, single=True, short=FIELDS, value=_value_of)
_LIST: Final = table_view(stored_table)
_DIFFERENCE: Final = table_view(difference_table)


@post(
    "/quotes",
    opt=HEAVY,
    summary="Keep a quote (key of scope quote)",
    dependencies={"key": needs("quote")},
    operation_class=documented("StoredQuote", body=body_of(_ToKeep), more_problems=_STORED, success=201),
)
async def post_quotes(
    request: Request[Any, Any, Any], key: NamedDependency[ApiKey], service: NamedDependency[Service]
) -> Response[bytes]:
    """Quote, and keep the answer for its owner; with an Idempotency-Key, once."""
    refuse_unknown(given_in_query(request), ())
    given = await json_object(request)
    once = request.headers.get("idempotency-key")
    if once is not None and not 1 <= len(once) <= _LONGEST_IDEMPOTENCY_KEY:
        raise HTTPException(
            status_code=400, detail=f"Idempotency-Key has {len(once)} characters; send 1 to 200."
        )

    def keep() -> tuple[StoredQuote, bytes]:
        revision, private_revision = given.get("revision"), given.get("private_revision")
        catalog = service.snapshots.seen_by(
            owner_of(key),
            revision if isinstance(revision, int) else None,
            private_revision if isinstance(private_revision, int) else None,
        )
        stored, _ = store_quote(
            service.quotes,
            catalog,
            given,
            owner=owner_of(key),
            idempotency_key=once,
            today=service.today(),
            written=lambda kept: _written(kept, catalog, service.today()),
        )
        return service.quotes.content(stored.id, "json", Reader(stored.owner))

    stored, content = await service.heavy.run(keep)
    headers = {"Location": f"/quotes/{stored.id}", "Cache-Control": "no-store"}
    return Response(content, status_code=201, media_type="application/json", headers=headers)


@route(
    with_suffixes("/quotes", _LIST),
    http_method=READ,
    summary="Quotes that the holder of the key keeps",
    dependencies={"key": needs("read")},
    operation_class=documented(
        "StoredQuotes",
        parameters=query_parameters(StoredFilter, more=(*SHOWN_AS, *SHOWN_FIELD)),
        more_problems=_KEYED,
    ),
)
async def get_quotes(
    request: Request[Any, Any, Any], key: NamedDependency[ApiKey], service: NamedDependency[Service]
) -> Response[bytes]:
    """Search by label, model and day, the newest first."""
    shown = presented(request, _LIST)
    search = search_of(service.catalog, parse_filter(StoredFilter, shown.given))
    found = await sync_to_thread(service.quotes.listed, search, _reads(key))
    listed = {"items": [listed_quote(quote) for quote in found]}
    return Response(shown.rendered(listed), media_type=shown.format.content_type, headers=_NOT_KEPT)


@route(
    "/quotes/{id:str}",
    http_method=READ,
    summary="A stored quote, the same bytes for ever",
    dependencies={"key": needs("read")},
    operation_class=documented(
        "StoredQuote",
        parameters=_SHOWN,
        more_problems=_KEYED,
    ),
)
async def get_stored_quote(
    request: Request[Any, Any, Any],
    id: FromPath[str],
    key: NamedDependency[ApiKey],
    service: NamedDependency[Service],
) -> Response[bytes]:
    """The quote as it was written, in the format that the suffix, `format` or Accept names."""
    shown = presented(request, _ONE)
    refuse_unknown(shown.given, ())
    name = _without_suffix(request, id)
    content = await sync_to_thread(_content, service, name, key, shown)
    return _kept_for_ever(request, content, shown)


@route(
    "/quotes/{id:str}/compare/{other:str}",
    http_method=READ,
    opt=HEAVY,
    summary="What made the difference between two stored quotes",
    dependencies={"key": needs("read")},
    operation_class=documented("Explained", parameters=_SHOWN, more_problems=_KEYED),
)
async def get_difference(
    request: Request[Any, Any, Any],
    id: FromPath[str],
    other: FromPath[str],
    key: NamedDependency[ApiKey],
    service: NamedDependency[Service],
) -> Response[bytes]:
    """Explain the second by the first, one cause at a time; `.csv` and its like have a row per cause."""
    shown = presented(request, _DIFFERENCE)
    refuse_unknown(shown.given, ())
    names = (id, _without_suffix(request, other))

    def explain() -> bytes:
        first, second = (json.loads(service.quotes.content(name, "json", _reads(key))[1]) for name in names)
        return shown.rendered(compare_quotes(service.catalog, first, second, service.today()))

    explained = await service.heavy.run(explain)
    return Response(explained, media_type=shown.format.content_type, headers=_NOT_KEPT)


def _written(kept: Mapping[str, Any], catalog: Catalog, today: date) -> dict[str, bytes]:
    """What is kept, in every format but single values, which are read out of it."""
    rendered = {one: FORMATS[one].render(kept, _ONE, None) for one in ("json", "csv", "xml")}
    return {**rendered, "xlsx": quote_workbook(catalog, parse_request(kept["asked"]), today)}


def _content(service: Service, id: str, key: ApiKey, shown: Presentation) -> bytes:
    suffix = next(name for name, one in FORMATS.items() if one is shown.format)
    _, content = service.quotes.content(id, "json" if suffix == _TXT else suffix, _reads(key))
    return shown.rendered(json.loads(content)) if suffix == _TXT else content


def _kept_for_ever(request: Request[Any, Any, Any], content: bytes, shown: Presentation) -> Response[bytes]:
    tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
    headers = {**_FOR_EVER, "ETag": tag}
    held = request.headers.get("if-none-match", "")
    if tag in {one.strip().removeprefix("W/") for one in held.split(",")}:
        return Response(b"", status_code=304, media_type=shown.format.content_type, headers=headers)
    return Response(content, media_type=shown.format.content_type, headers=headers)


def _without_suffix(request: Request[Any, Any, Any], name: str) -> str:
    suffix = suffix_of(request)
    return name.removesuffix(f".{suffix}") if suffix else name


def _reads(key: ApiKey) -> Reader:
    """Whose quotes a key may read: an admin's, everybody's but those made with negotiated prices."""
    return Reader(owner_of(key), is_admin=key.scope == "admin")
