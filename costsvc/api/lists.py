"""What the catalog holds of one kind: a list, in every format that a table has, and each entry by its id."""

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from typing import Any, TypeVar

from litestar import Request, Response, route
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from costsvc.api.formats import FORMATS, Presentation, presented, table_view, with_suffixes
from costsvc.api.openapi import READ, SHOWN_AS, SHOWN_FIELD, documented, query_parameters
from costsvc.api.rendering import answer, given_in_query, listed
from costsvc.api.service import Service
from costsvc.api.viewer import catalog_for
from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest
from costsvc.quoting.given import parse_filter
from costsvc.quoting.listing.common import Day
from costsvc.quoting.listing.parts import PAGING, Ordered
from costsvc.quoting.tables.listings import listing
from costsvc.quoting.tables.table import Column

Wanted = TypeVar("Wanted", bound=Ordered)


def list_of(
    path: str,
    rows: Callable[[Catalog, Wanted, date], Sequence[object]],
    *,
    wanted: type[Wanted],
    columns: Sequence[Column],
    answers: str,
    summary: str,
) -> HTTPRouteHandler:
    """The route of a list.

    Parameters
    ----------
    rows : callable
        Entries that a filter lets through, on a day.
    answers : str
        Name of the answer's schema.
    """
    view = table_view(partial(listing, path.strip("/").replace("-", "_"), columns))

    @route(
        with_suffixes(path, view),
        http_method=READ,
        summary=summary,
        operation_class=documented(
            answers, parameters=query_parameters(wanted, more=(*SHOWN_AS, *SHOWN_FIELD))
        ),
    )
    async def get_list(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
        shown = presented(request, view)
        filters = parse_filter(wanted, shown.given)
        _refuse_pages_of_tables(shown)
        day = filters.as_of or service.today()
        catalog = await catalog_for(request, service)
        return answer(
            request,
            catalog,
            day=day,
            given=shown.given,
            shown=shown,
            compute=lambda: listed(catalog, day, rows(catalog, filters, day)),
        )

    return get_list


def entry_of(
    path: str, show: Callable[[Catalog, str, date], object], *, answers: str, summary: str
) -> HTTPRouteHandler:
    """The route of one entry, by any of its spellings, on a day."""

    @route(
        f"{path}/{{id:path}}",
        http_method=READ,
        summary=summary,
        operation_class=documented(answers, parameters=query_parameters(Day)),
    )
    async def get_entry(
        request: Request[Any, Any, Any], id: FromPath[str], service: NamedDependency[Service]
    ) -> Response[bytes]:
        given = given_in_query(request)
        day = parse_filter(Day, given).as_of or service.today()
        catalog = await catalog_for(request, service)
        return answer(
            request,
            catalog,
            day=day,
            given=given,
            compute=lambda: show(catalog, id.removeprefix("/"), day),
        )

    return get_entry


def _refuse_pages_of_tables(shown: Presentation) -> None:
    """Whoever loads a table into a sheet would take its first page for the whole."""
    paged = [name for name in PAGING if name in shown.given]
    if paged and shown.format is not FORMATS["json"]:
        raise InvalidRequest(
            f"{paged[0]} makes pages of the JSON list, and a table has none: it is always the whole list. Leave "
            f"{paged[0]} away, or ask for JSON.",
            field=paged[0],
        )
