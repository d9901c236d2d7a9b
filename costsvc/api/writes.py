"""What every write of the catalog shares: who did what, a revision of its own, and where the new entry is."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from litestar import Request, Response
from litestar.concurrency import sync_to_thread

from costsvc.api.rendering import uncached
from costsvc.api.service import Service
from costsvc.db.keys import ApiKey
from costsvc.db.snapshot import Catalog
from costsvc.quoting.publishing import Change, publish

WRITE_PROBLEMS: Final = (401, 403, 422)


async def publish_at_once(
    request: Request[Any, Any, Any], change: Change, author: ApiKey, service: Service
) -> None:
    """Store a changed catalog and take it at once, so that the next read shows it."""

    def store() -> None:
        publish(service.repository, change, author=author_text(author), note=act(request))
        service.snapshots.refresh()

    await sync_to_thread(store)


def author_text(key: ApiKey) -> str:
    """Who writes, for the record."""
    return f"key {key.id} ({key.label})"


def act(request: Request[Any, Any, Any]) -> str:
    """What is asked for, for the record."""
    return f"{request.method} {request.scope['path']}"


def created(
    request: Request[Any, Any, Any], catalog: Catalog, path: str, id: str, made: Mapping[str, Any]
) -> Response[bytes]:
    """The answer to a write: `made`, and where to read it."""
    response = uncached(request, catalog, made, status=201)
    response.headers["Location"] = f"{path}/{quote(id)}"
    return response
