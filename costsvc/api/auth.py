"""Who may write: the holder of an admin key, shown in a header; and whose stored quotes are."""

from typing import Any

from litestar import Request
from litestar.concurrency import sync_to_thread
from litestar.di import NamedDependency
from litestar.exceptions import HTTPException

from costsvc.api.service import Service
from costsvc.db.keys import ApiKey
from costsvc.errors import NotAuthorized


async def admin(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> ApiKey:
    """The admin key of a request."""
    shown = _shown(request)
    if not shown:
        raise NotAuthorized("Writing needs an admin key: send it as X-API-Key, or as Authorization: Bearer.")
    key = await sync_to_thread(service.keys.verify, shown)
    if key.scope != "admin":
        raise HTTPException(
            status_code=403, detail=f"API key {key.id} may only read. Use a key of scope admin to write."
        )
    return key


async def holder(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> ApiKey:
    """The key of a request that reads or stores what is its owner's; a read may show it in the query."""
    in_query = "" if request.method == "POST" else request.query_params.get("api_key", "")
    shown = _shown(request) or in_query
    if not shown:
        raise NotAuthorized(
            "Stored quotes belong to the holder of a key: send yours as X-API-Key, as Authorization: Bearer "
            "or, where a cell can send no header, as api_key. `costsvc keys create` makes one."
        )
    return await sync_to_thread(service.keys.verify, shown)


def _shown(request: Request[Any, Any, Any]) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return request.headers.get("x-api-key", "") or (token.strip() if scheme.lower() == "bearer" else "")
