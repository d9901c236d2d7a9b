"""Who asks: the holder of a key, shown in a header or, by a read, in the query; and what a key may do."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast
from urllib.parse import unquote_plus

from litestar import Request
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.types import Scope as RequestScope

from costsvc.db.keys import SCOPES, ApiKey, Scope
from costsvc.errors import NotAuthorized

HOW_TO_SHOW: Final = (
    "Send it as X-API-Key, as Authorization: Bearer or, in a read from a cell that can send no header, as "
    "api_key. `costsvc keys create` makes one."
)
_IN_QUERY: Final = re.compile(rb"(?:^|&)api_key=([^&]*)")
_READS: Final = frozenset({"GET", "HEAD"})
_WHAT: Final[dict[Scope, str]] = {
    "read": "What is stored belongs to the holder of a key.",
    "quote": "Storing needs a key.",
    "catalog-write": "Writing to the catalog needs a key.",
    "admin": "This needs an admin key.",
}


def needs(scope: Scope) -> Provide:
    """A dependency: the key of the request, which must be there and allow `scope`."""

    async def holder(request: Request[Any, Any, Any]) -> ApiKey:
        key = key_of(request.scope)
        if key is None:
            raise NotAuthorized(f"{_WHAT[scope]} {HOW_TO_SHOW}")
        if not key.may(scope):
            enough = " or ".join(SCOPES[SCOPES.index(scope) :])
            raise HTTPException(
                status_code=403,
                detail=f"API key {key.id} has scope {key.scope}, which does not allow this. Use one of scope {enough}.",
            )
        return key

    return Provide(cast("Callable[..., Awaitable[ApiKey]]", holder))


def key_of(scope: RequestScope) -> ApiKey | None:
    """The key that was shown with a request and found valid at the door, or None where none was shown."""
    return cast("ApiKey | None", scope["state"].get("key"))


def owner_of(key: ApiKey) -> str:
    """Keys of one named owner share what is theirs; a key of nobody has its own."""
    return f"owner {key.owner}" if key.owner else f"key {key.id}"


def shown_key(scope: RequestScope) -> str:
    """The key as it was sent, or nothing.

    Raises
    ------
    NotAuthorized
        A write or another POST shows it in its query: to be quoted without it would be a silent default.
    """
    bearer = ""
    for name, value in scope["headers"]:
        if name == b"x-api-key" and value:
            return value.decode("latin-1")
        if name == b"authorization":
            kind, _, token = value.decode("latin-1").partition(" ")
            bearer = token.strip() if kind.lower() == "bearer" else bearer
    if bearer or b"api_key=" not in scope["query_string"]:
        return bearer
    found = _IN_QUERY.search(scope["query_string"])
    shown = unquote_plus(found[1].decode("latin-1")) if found else ""
    if shown and scope.get("method") not in _READS:
        raise NotAuthorized(
            f"A {scope.get('method')} takes its key from a header, X-API-Key or Authorization: Bearer, not from the "
            "query, which others may see."
        )
    return shown
