"""How far the numbers are off: the figures of `docs/accuracy.md` and the points behind them, for programs."""

from typing import Any

from litestar import Request, Response, route
from litestar.di import NamedDependency

from costsvc.api.openapi import READ, documented
from costsvc.api.rendering import answer, given_in_query, listed
from costsvc.api.service import Service
from costsvc.errors import Unavailable
from costsvc.quoting.given import refuse_unknown


@route(
    "/validation",
    http_method=READ,
    sync_to_thread=False,
    summary="Accuracy on published measurements",
    operation_class=documented("Validation"),
)
def get_validation(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """Errors in sample and held out, by regime, with the bands' coverage and the rows left out."""
    given = given_in_query(request)
    refuse_unknown(given, ())
    figures = service.validation
    if figures is None:
        raise Unavailable(
            "The catalog folder of this service holds no fit/validation.json. Write it with "
            "`costsvc validate` on a folder of measured points, and start the service again."
        )
    return answer(request, service.catalog, day=service.today(), given=given, compute=lambda: figures)


@route(
    "/validation/points",
    http_method=READ,
    sync_to_thread=True,
    summary="Held-out points",
    operation_class=documented("HeldOutPoints"),
)
def get_points(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """Every point that was predicted by a fit which had not seen its configuration, beside what was measured."""
    given = given_in_query(request)
    refuse_unknown(given, ())
    points = service.points()
    if not points:
        raise Unavailable(
            "The catalog folder of this service holds no fit/held_out.csv. Write it with `costsvc calibrate` on a "
            "folder of measured points, and start the service again."
        )
    generations = {id: entry.spec.generation for id, entry in service.catalog.gpus.items()}
    rows = [{**point, "generation": generations.get(point["gpu"])} for point in points]
    return answer(
        request,
        service.catalog,
        day=service.today(),
        given=given,
        compute=lambda: listed(service.catalog, service.today(), rows),
    )
