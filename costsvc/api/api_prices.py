"""Published prices of tokens."""

from functools import partial
from typing import Any

from litestar import Request, Response, route
from litestar.di import NamedDependency
from litestar.params import FromPath

from costsvc.api.formats import View, presented, with_suffixes
from costsvc.api.openapi import READ, SHOWN_AS, documented, query_parameters
from costsvc.api.rendering import answer, given_in_query, listed
from costsvc.api.service import Service
from costsvc.quoting.given import parse_filter
from costsvc.quoting.listing.api_prices import ApiPriceFilter, list_api_prices, show_api_price
from costsvc.quoting.listing.common import Day
from costsvc.quoting.tables.listings import API_PRICES, listing

_VIEW = View(table=partial(listing, "api_prices", API_PRICES))
_PATHS = with_suffixes("/api-prices", _VIEW)


@route(
    _PATHS,
    http_method=READ,
    sync_to_thread=False,
    summary="Published token prices",
    operation_class=documented("ApiPrices", parameters=query_parameters(ApiPriceFilter, more=SHOWN_AS)),
)
def get_api_prices(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """The newest published token prices not after the day."""
    shown = presented(request, _VIEW)
    wanted = parse_filter(ApiPriceFilter, shown.given)
    day = wanted.as_of or service.today()
    catalog = service.catalog
    return answer(
        request,
        catalog,
        day=day,
        given=shown.given,
        shown=shown,
        compute=lambda: listed(catalog, day, list_api_prices(catalog, wanted, day)),
    )


@route(
    "/api-prices/{id:path}",
    http_method=READ,
    sync_to_thread=False,
    summary="Every observation of one published price",
    operation_class=documented("ApiPrice", parameters=query_parameters(Day)),
)
def get_api_price(
    request: Request[Any, Any, Any], id: FromPath[str], service: NamedDependency[Service]
) -> Response[bytes]:
    """One provider's price of one of its models, over time."""
    given = given_in_query(request)
    day = parse_filter(Day, given).as_of or service.today()
    catalog = service.catalog
    return answer(
        request, catalog, day=day, given=given, compute=lambda: show_api_price(catalog, id.removeprefix("/"))
    )
