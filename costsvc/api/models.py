"""Models of the catalog."""

from datetime import date
from typing import Any

from litestar import Request, Response, route
from litestar.di import NamedDependency
from litestar.params import FromPath

from costsvc.api.openapi import READ, documented, query_parameters
from costsvc.api.rendering import answer, given_in_query, listed
from costsvc.db.snapshot import Catalog
from costsvc.quoting.given import parse_filter
from costsvc.quoting.listing.common import Day
from costsvc.quoting.listing.models import ModelFilter, list_models, show_model


@route(
    "/models",
    http_method=READ,
    sync_to_thread=False,
    summary="Models",
    operation_class=documented("Models", parameters=query_parameters(ModelFilter)),
)
def get_models(
    request: Request[Any, Any, Any], catalog: NamedDependency[Catalog], today: NamedDependency[date]
) -> Response[bytes]:
    """The models that can be quoted."""
    given = given_in_query(request)
    wanted = parse_filter(ModelFilter, given)
    day = wanted.as_of or today
    return answer(
        request,
        catalog,
        day=day,
        given=given,
        compute=lambda: listed(catalog, day, list_models(catalog, wanted)),
    )


@route(
    "/models/{id:path}",
    http_method=READ,
    sync_to_thread=False,
    summary="A model and its shapes",
    operation_class=documented("Model", parameters=query_parameters(Day)),
)
def get_model(
    request: Request[Any, Any, Any],
    id: FromPath[str],
    catalog: NamedDependency[Catalog],
    today: NamedDependency[date],
) -> Response[bytes]:
    """One model, by id or alias."""
    given = given_in_query(request)
    day = parse_filter(Day, given).as_of or today
    return answer(
        request, catalog, day=day, given=given, compute=lambda: show_model(catalog, id.removeprefix("/"))
    )
