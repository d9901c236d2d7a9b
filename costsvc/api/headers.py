"""Headers of every response: a request id, and leave for any page to read the answer."""

from typing import Final

from litestar.datastructures import MutableScopeHeaders
from litestar.types import Message, Scope

from costsvc.api.request_id import request_id_of

# A cache may hand one caller's answer to another, so these do not depend on who asked. No cookie opens
# anything here, hence no origin needs to be kept out.
_OPEN: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "ETag, X-Catalog-Revision, X-Request-Id",
}
_PREFLIGHT: Final = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, If-None-Match, X-API-Key",
    "Access-Control-Max-Age": "86400",
}


async def add_headers(message: Message, scope: Scope) -> None:
    """Complete a response as it leaves; that of HEAD loses its body."""
    method = scope.get("method")
    if message["type"] == "http.response.start":
        headers = MutableScopeHeaders.from_message(message)
        headers["X-Request-Id"] = request_id_of(scope)
        headers.update(_OPEN)
        if method == "OPTIONS":
            headers.update(_PREFLIGHT)
    elif message["type"] == "http.response.body" and method == "HEAD":
        message["body"] = b""
