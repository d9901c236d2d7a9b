"""Models of the catalog."""

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
from costsvc.quoting.listing.common import Day
from costsvc.quoting.listing.models import ModelFilter, list_models, show_model
from costsvc.quoting.tables.listings import MODELS, listing

_VIEW = View(table=partial(listing, "models", MODELS))
_PATHS = with_suffixes("/models", _VIEW)


@route(
    _PATHS,
    http_method=READ,
    sync_to_thread=False,
    summary="Models",
    operation_class=documented("Models", parameters=query_parameters(ModelFilter, more=SHOWN_AS)),
)
def get_models(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """The models that can be quoted."""
    shown = presented(request, _VIEW)
    wanted = parse_filter(ModelFilter, shown.given)
    day = wanted.as_of or service.today()
    catalog = service.catalog
    return answer(
        request,
        catalog,
        day=day,
        given=shown.given,
        shown=shown,
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
    request: Request[Any, Any, Any], id: FromPath[str], service: NamedDependency[Service]
) -> Response[bytes]:
    """One model, by id or alias."""
    given = given_in_query(request)
    day = parse_filter(Day, given).as_of or service.today()
    catalog = service.catalog
    return answer(
        request, catalog, day=day, given=given, compute=lambda: show_model(catalog, id.removeprefix("/"))
    )
