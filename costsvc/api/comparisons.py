"""Comparisons of many configurations: they take up to seconds, so each runs in a thread, when it is its turn."""

from collections.abc import Callable
from datetime import date
from typing import Any, Final, TypeVar

from litestar import Request, Response, post, route
from litestar.di import NamedDependency

from costsvc.api.bodies import json_object
from costsvc.api.door import HEAVY
from costsvc.api.formats import View, presented, table_view, with_suffixes
from costsvc.api.openapi import READ, SHOWN_AS, SHOWN_FIELD, body_of, documented, query_parameters
from costsvc.api.rendering import answer, given_in_query, uncached
from costsvc.api.service import Service
from costsvc.api.viewer import catalog_for
from costsvc.db.snapshot import Catalog
from costsvc.quoting.answer.currency import with_asked_currency
from costsvc.quoting.answer.plain import Section
from costsvc.quoting.compare import CompareRequest, compare
from costsvc.quoting.curve import CurveRequest, curve
from costsvc.quoting.frontier import FrontierRequest, frontier
from costsvc.quoting.given import parse_filter, refuse_unknown
from costsvc.quoting.launch.request import LaunchRequest
from costsvc.quoting.launch_check import check_launch
from costsvc.quoting.request import QuoteRequest
from costsvc.quoting.roofline import roofline
from costsvc.quoting.tables.comparisons import comparison_table, curve_table, frontier_table
from costsvc.quoting.what_if import WhatIfRequest, what_if

Wanted = TypeVar("Wanted", bound=QuoteRequest)
UseCase = Callable[[Catalog, Wanted, date], Section]


_COMPARED: Final = table_view(comparison_table)
_CURVE: Final = table_view(curve_table)
_FRONTIER: Final = table_view(frontier_table)


@route(
    with_suffixes("/compare", _COMPARED),
    http_method=READ,
    opt=HEAVY,
    summary="GPUs, dtypes and modes ranked for one workload",
    operation_class=documented(
        "Comparison",
        parameters=query_parameters(CompareRequest, more=(*SHOWN_AS, *SHOWN_FIELD)),
        more_problems=(422,),
    ),
)
async def get_comparison(
    request: Request[Any, Any, Any], service: NamedDependency[Service]
) -> Response[bytes]:
    """Each combination by its cheapest layout."""
    return await _answered(request, service, CompareRequest, compare, view=_COMPARED)


@route(
    with_suffixes("/frontier", _FRONTIER),
    http_method=READ,
    opt=HEAVY,
    summary="User speed against price: what no other layout beats in both",
    operation_class=documented(
        "Frontier",
        parameters=query_parameters(FrontierRequest, more=(*SHOWN_AS, *SHOWN_FIELD)),
        more_problems=(422,),
    ),
)
async def get_frontier(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """The Pareto front."""
    return await _answered(request, service, FrontierRequest, frontier, view=_FRONTIER)


@route(
    with_suffixes("/curve", _CURVE),
    http_method=READ,
    opt=HEAVY,
    summary="Price, concurrency and latency against context, with the cliffs",
    operation_class=documented(
        "Curve",
        parameters=query_parameters(CurveRequest, more=(*SHOWN_AS, *SHOWN_FIELD)),
        more_problems=(422,),
    ),
)
async def get_curve(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """The quote of each context."""
    return await _answered(request, service, CurveRequest, curve, view=_CURVE)


@route(
    "/what-if",
    http_method=READ,
    opt=HEAVY,
    summary="The same model with another attention or cache, side by side",
    operation_class=documented("WhatIf", parameters=query_parameters(WhatIfRequest), more_problems=(422,)),
)
async def get_what_if(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """Counterfactual architectures."""
    return await _answered(request, service, WhatIfRequest, what_if)


@route(
    "/roofline",
    http_method=READ,
    opt=HEAVY,
    summary="A quote's decode and prefill steps under the roofs of its card",
    operation_class=documented(
        "Roofline", parameters=query_parameters(QuoteRequest, also_required=("ctx",)), more_problems=(422,)
    ),
)
async def get_roofline(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """Intensity and speed of both steps."""
    return await _answered(request, service, QuoteRequest, roofline)


@route(
    "/launch-check",
    http_method=READ,
    opt=HEAVY,
    summary="A long-context feature before launch: verdict, bill, cliffs and levers",
    operation_class=documented(
        "LaunchCheck", parameters=query_parameters(LaunchRequest), more_problems=(422,)
    ),
)
async def get_launch_check(
    request: Request[Any, Any, Any], service: NamedDependency[Service]
) -> Response[bytes]:
    """Check one feature."""
    return await _answered(request, service, LaunchRequest, check_launch)


@post(
    "/launch-check",
    status_code=200,
    opt=HEAVY,
    summary="The same for a full traffic profile",
    operation_class=documented("LaunchCheck", body=body_of(LaunchRequest), more_problems=(422,)),
)
async def post_launch_check(
    request: Request[Any, Any, Any], service: NamedDependency[Service]
) -> Response[bytes]:
    """Check one feature, for the traffic in the body."""
    refuse_unknown(given_in_query(request), ())
    wanted = parse_filter(LaunchRequest, await json_object(request))
    catalog = await catalog_for(request, service, wanted)
    today = service.today()
    checked = await service.heavy.run(
        lambda: with_asked_currency(catalog, wanted, today, lambda: check_launch(catalog, wanted, today))
    )
    return uncached(request, catalog, checked)


async def _answered(
    request: Request[Any, Any, Any],
    service: Service,
    kind: type[Wanted],
    use_case: UseCase[Wanted],
    view: View | None = None,
) -> Response[bytes]:
    shown = None if view is None else presented(request, view)
    given = given_in_query(request) if shown is None else shown.given
    wanted = parse_filter(kind, given)
    today = service.today()
    catalog = await catalog_for(request, service, wanted)
    return await service.heavy.run(
        lambda: answer(
            request,
            catalog,
            day=wanted.as_of or today,
            given=given,
            shown=shown,
            compute=lambda: with_asked_currency(
                catalog, wanted, today, lambda: use_case(catalog, wanted, today)
            ),
        )
    )
