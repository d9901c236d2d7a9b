"""The figures of the service for Prometheus."""

from typing import Any

from litestar import Request, Response, route
from litestar.di import NamedDependency

from costsvc.api.door import UNCOUNTED
from costsvc.api.openapi import READ
from costsvc.api.rendering import given_in_query
from costsvc.api.service import Service
from costsvc.api.watch.metrics import CONTENT_TYPE
from costsvc.quoting.given import refuse_unknown


@route("/metrics", http_method=READ, sync_to_thread=True, include_in_schema=False, opt=UNCOUNTED)
def get_metrics(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """Every figure, of all processes of this service."""
    refuse_unknown(given_in_query(request), ())
    service.show_state()
    exposed = service.metrics.exposed()
    return Response(exposed, media_type=CONTENT_TYPE, headers={"Cache-Control": "no-store"})
