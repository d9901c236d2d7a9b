"""Accelerators of the catalog."""

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
from costsvc.quoting.listing.gpus import GpuFilter, list_gpus, show_gpu
from costsvc.quoting.tables.listings import GPUS, listing

_VIEW = View(table=partial(listing, "gpus", GPUS))
_PATHS = with_suffixes("/gpus", _VIEW)


@route(
    _PATHS,
    http_method=READ,
    summary="Accelerators",
    operation_class=documented("Gpus", parameters=query_parameters(GpuFilter, more=SHOWN_AS)),
)
async def get_gpus(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """The accelerators that can be quoted, each with its reference price on the day."""
    shown = presented(request, _VIEW)
    wanted = parse_filter(GpuFilter, shown.given)
    day = wanted.as_of or service.today()
    catalog = await catalog_for(request, service)
    return answer(
        request,
        catalog,
        day=day,
        given=shown.given,
        shown=shown,
        compute=lambda: listed(catalog, day, list_gpus(catalog, wanted, day)),
    )


@route(
    "/gpus/{id:path}",
    http_method=READ,
    summary="An accelerator and its sources",
    operation_class=documented("Gpu", parameters=query_parameters(Day)),
)
async def get_gpu(
    request: Request[Any, Any, Any], id: FromPath[str], service: NamedDependency[Service]
) -> Response[bytes]:
    """One accelerator, by id or alias."""
    given = given_in_query(request)
    day = parse_filter(Day, given).as_of or service.today()
    catalog = await catalog_for(request, service)
    return answer(
        request, catalog, day=day, given=given, compute=lambda: show_gpu(catalog, id.removeprefix("/"), day)
    )
