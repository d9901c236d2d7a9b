"""How far the numbers are off: the figures of `docs/accuracy.md`, for programs."""

from typing import Any

from litestar import Request, Response, route
from litestar.di import NamedDependency

from costsvc.api.openapi import READ, documented
from costsvc.api.rendering import answer, given_in_query
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
