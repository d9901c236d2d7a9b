"""For what watches the service: is the process alive, and can it quote."""

from typing import Any

from litestar import Request, Response, route
from litestar.di import NamedDependency

from costsvc.api.door import OPEN, UNCOUNTED
from costsvc.api.json_text import to_json
from costsvc.api.openapi import READ, documented
from costsvc.api.rendering import given_in_query
from costsvc.api.service import Service
from costsvc.quoting.given import refuse_unknown

_NOT_STORED = {"Cache-Control": "no-store"}


@route(
    "/healthz",
    http_method=READ,
    sync_to_thread=False,
    opt=OPEN | UNCOUNTED,
    summary="Whether the process is alive",
    operation_class=documented("Alive"),
)
def get_health(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Answers as long as the process does."""
    refuse_unknown(given_in_query(request), ())
    return Response(to_json({"alive": True}), media_type="application/json", headers=_NOT_STORED)


@route(
    "/readyz",
    http_method=READ,
    sync_to_thread=False,
    opt=OPEN | UNCOUNTED,
    summary="Whether quotes can be answered, and from which catalog",
    operation_class=documented("Readiness"),
)
def get_readiness(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """Ready while a catalog is in memory, also without a database or Redis; a problem before the first one is."""
    refuse_unknown(given_in_query(request), ())
    stale_seconds = service.snapshots.stale_seconds
    readiness = {
        "ready": True,
        "catalog_revision": service.catalog.revision,
        "database_reachable": stale_seconds == 0,
        "stale_seconds": round(stale_seconds, 1),
        "limits": "shared" if service.shared is not None and service.shared.is_reached else "per process",
        "redis_reachable": None if service.shared is None else service.shared.is_reached,
    }
    return Response(to_json(readiness), media_type="application/json", headers=_NOT_STORED)
