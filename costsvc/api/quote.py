"""One quote: nothing is stored, and nothing is read but the catalog in memory."""

from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Any, Final

from litestar import Request, Response, post, route
from litestar.di import NamedDependency

from costsvc.api.bodies import json_object
from costsvc.api.formats import FORMATS, Presentation, View, presented, with_suffixes
from costsvc.api.openapi import (
    READ,
    SHOWN_AS,
    SHOWN_FIELD,
    body_of,
    documented,
    query_parameters,
)
from costsvc.api.recall import RECALLED
from costsvc.api.rendering import answer, given_in_query, uncached
from costsvc.api.service import Service
from costsvc.api.viewer import catalog_for
from costsvc.db.snapshot import Catalog
from costsvc.quoting.answer.plain import Section
from costsvc.quoting.flat import quote_row, quote_table
from costsvc.quoting.given import refuse_unknown
from costsvc.quoting.grid import grid_of, is_grid, refuse_several
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import QuoteRequest, parse_request
from costsvc.quoting.rows import RowMaker
from costsvc.quoting.tables.as_text import FIELDS, value_of
from costsvc.quoting.tables.table import Table
from costsvc.quoting.workbooks import quote_workbook

_PROFILE: Final = "profile"
_BY_PROFILE: Final = (
    (_PROFILE, "A traffic profile of /profiles, by id or alias, in place of ctx and output."),
)
_KEPT_WORKBOOKS: Final = 8


def _one_row(made: Any) -> Table:
    return quote_table([quote_row(made)])


def _value(made: Any, field: str | None) -> str:
    return value_of(quote_row(made), made, field)


_ONE: Final = View(table=_one_row, single=True, short=FIELDS, value=_value)
_SEVERAL: Final = View(table=quote_table)


@route(
    with_suffixes("/quote", _ONE),
    http_method=READ,
    opt=RECALLED,
    summary="Prices of input, cached input and output tokens",
    operation_class=documented(
        "Quote",
        parameters=query_parameters(
            QuoteRequest, without=(_PROFILE,), more=(*_BY_PROFILE, *SHOWN_AS, *SHOWN_FIELD)
        ),
        more_problems=(422,),
    ),
)
async def get_quote(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """Quote one model on one accelerator; as a table also several of each."""
    today = service.today()
    shown = presented(request, _ONE)
    given = shown.given
    if shown.format.has(_SEVERAL) and shown.format is not FORMATS["json"]:
        catalog = await catalog_for(request, service)
        if is_grid(given, catalog):
            several = replace(shown, view=_SEVERAL)
            return await service.heavy.run(lambda: _grid(request, catalog, several, today))
    refuse_several(given, service.catalog)
    wanted = parse_request(given)
    ground = await _ground(request, service, wanted)
    if shown.format is FORMATS["xlsx"]:
        return await service.heavy.run(lambda: _audit(request, ground, shown, wanted, today))
    return answer(
        request,
        ground.catalog,
        day=wanted.as_of or today,
        given=given,
        shown=shown,
        is_stale=ground.is_stale,
        compute=lambda: _counted(service, ground.quote(wanted, today)),
    )


def _counted(service: Service, made: Any) -> Any:
    service.metrics.quoted(made["request"]["model"], made["concurrency"]["bound"])
    return made


def _audit(
    request: Request[Any, Any, Any],
    ground: "_Ground",
    shown: Presentation,
    wanted: QuoteRequest,
    today: date,
) -> Response[bytes]:
    """The quote as a workbook of live formulas."""
    return answer(
        request,
        ground.catalog,
        day=wanted.as_of or today,
        given=shown.given,
        shown=shown,
        compute=lambda: _workbook(ground.catalog, wanted.model_dump_json(exclude_unset=True), today),
    )


# To open one, LibreOffice asks for its head several times before it asks for the whole.
@lru_cache(maxsize=_KEPT_WORKBOOKS)
def _workbook(catalog: Catalog, wanted: str, today: date) -> bytes:
    return quote_workbook(catalog, QuoteRequest.model_validate_json(wanted), today)


def _grid(
    request: Request[Any, Any, Any], catalog: Catalog, shown: Presentation, today: date
) -> Response[bytes]:
    """A row per combination, each with its prices or its reason."""
    requests = grid_of(shown.given, catalog)
    maker = RowMaker(catalog, today)
    return answer(
        request,
        catalog,
        day=today,
        given=shown.given,
        shown=shown,
        compute=lambda: maker.rows(requests),
    )


@post(
    "/quote",
    status_code=200,
    summary="The same for a full traffic profile",
    operation_class=documented("Quote", body=body_of(QuoteRequest), more_problems=(422,)),
)
async def post_quote(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """Quote one model on one accelerator, for the traffic in the body."""
    refuse_unknown(given_in_query(request), ())
    wanted = parse_request(await json_object(request))
    today = service.today()
    ground = await _ground(request, service, wanted)
    return uncached(request, ground.catalog, _counted(service, ground.quote(wanted, today)))


@dataclass(frozen=True, slots=True)
class _Ground:
    """The catalog to quote from, and whether the database has been silent for so long that quotes say so."""

    catalog: Catalog
    is_stale: bool

    def quote(self, wanted: QuoteRequest, today: date) -> Section:
        """The answer, with a warning where the catalog may be behind."""
        made = make_quote(self.catalog, wanted, today)
        if not self.is_stale:
            return made
        warning = (
            "The catalog's database does not answer: this quote is from the catalog in memory, and changes "
            "made since are missing. /readyz says for how long."
        )
        warnings = made["warnings"]
        return {**made, "warnings": [*(warnings if isinstance(warnings, list) else ()), warning]}


async def _ground(
    request: Request[Any, Any, Any], service: Service, wanted: QuoteRequest | None = None
) -> _Ground:
    catalog = await catalog_for(request, service, wanted)
    return _Ground(catalog, catalog.revision == service.catalog.revision and service.is_stale)
