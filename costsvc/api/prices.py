"""Offers of GPU hours."""

from functools import partial
from typing import Any

from litestar import Request, Response, route
from litestar.di import NamedDependency
from litestar.params import FromPath

from costsvc.api.formats import View, presented, with_suffixes
from costsvc.api.openapi import READ, SHOWN_AS, documented, query_parameters
from costsvc.api.rendering import answer, given_in_query, listed
from costsvc.api.service import Service
from costsvc.api.viewer import catalog_for
from costsvc.quoting.given import parse_filter
from costsvc.quoting.listing.common import Day
from costsvc.quoting.listing.prices import PriceFilter, list_prices, show_price
from costsvc.quoting.tables.listings import PRICES, listing

_VIEW = View(table=partial(listing, "prices", PRICES))
_PATHS = with_suffixes("/prices", _VIEW)


@route(
    _PATHS,
    http_method=READ,
    summary="Offers of GPU hours with a price on the day",
    operation_class=documented("Prices", parameters=query_parameters(PriceFilter, more=SHOWN_AS)),
)
async def get_prices(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """Offers with a price in force on the day."""
    shown = presented(request, _VIEW)
    wanted = parse_filter(PriceFilter, shown.given)
    day = wanted.as_of or service.today()
    catalog = await catalog_for(request, service)
    return answer(
        request,
        catalog,
        day=day,
        given=shown.given,
        shown=shown,
        compute=lambda: listed(catalog, day, list_prices(catalog, wanted, day)),
    )


@route(
    "/prices/{id:path}",
    http_method=READ,
    summary="An offer with its history and sources",
    operation_class=documented("Price", parameters=query_parameters(Day)),
)
async def get_price(
    request: Request[Any, Any, Any], id: FromPath[str], service: NamedDependency[Service]
) -> Response[bytes]:
    """One offer and every price it ever had."""
    given = given_in_query(request)
    day = parse_filter(Day, given).as_of or service.today()
    catalog = await catalog_for(request, service)
    return answer(
        request, catalog, day=day, given=given, compute=lambda: show_price(catalog, id.removeprefix("/"), day)
    )
