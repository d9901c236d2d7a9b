"""Headers of every response: a request id, and leave for any page to read the answer."""

from typing import Final

from litestar.types import Message, Scope

from costsvc.api.request_id import request_id_of

# A cache may hand one caller's answer to another, so these do not depend on who asked. No cookie opens
# anything here, hence no origin needs to be kept out.
_OPEN: Final = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"ETag, X-Catalog-Revision, X-Request-Id"),
)
_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, HEAD, POST"),
    (b"access-control-allow-headers", b"Authorization, Content-Type, If-None-Match, X-API-Key"),
    (b"access-control-max-age", b"86400"),
)


async def add_headers(message: Message, scope: Scope) -> None:
    """Complete a response as it leaves; that of HEAD loses its body."""
    method = scope.get("method")
    if message["type"] == "http.response.start":
        message["headers"] = [
            *message["headers"],
            (b"x-request-id", request_id_of(scope).encode()),
            *_OPEN,
            *(_PREFLIGHT if method == "OPTIONS" else ()),
        ]
    elif message["type"] == "http.response.body" and method == "HEAD":
        message["body"] = b""
