"""Headers of every response: a request id, what pages may do with the answer, and what the door has to say."""

from base64 import b64encode
from collections.abc import Callable, Collection, Coroutine
from hashlib import sha256
from typing import Any, Final

from litestar.types import Message, Scope

from costsvc.api.docs import STYLE
from costsvc.api.request_id import request_id_of

# A cache may hand one caller's answer to another, so these do not depend on who asked. No cookie opens
# anything here, hence no origin needs to be kept out of a read.
_READABLE: Final = (
    (b"access-control-allow-origin", b"*"),
    (
        b"access-control-expose-headers",
        b"ETag, RateLimit, RateLimit-Policy, Retry-After, X-Catalog-Revision, X-Request-Id",
    ),
)
_PREFLIGHT: Final = (
    (b"access-control-allow-headers", b"Authorization, Content-Type, If-None-Match, X-API-Key"),
    (b"access-control-max-age", b"86400"),
)
_MAY_READ: Final = (b"access-control-allow-methods", b"GET, HEAD")
_MAY_ASK: Final = (b"access-control-allow-methods", b"GET, HEAD, POST")
# Answers are no pages: what a browser shows of one runs nothing and loads nothing.
_POLICY: Final = (
    b"content-security-policy",
    b"default-src 'none'; style-src 'sha256-%b'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    % b64encode(sha256(STYLE.encode()).digest()),
)
_SAFE: Final = (
    (b"x-content-type-options", b"nosniff"),
    # An address may hold a key.
    (b"referrer-policy", b"no-referrer"),
)

BeforeSend = Callable[[Message, Scope], Coroutine[Any, Any, None]]


def completed(writes: Collection[str]) -> BeforeSend:
    """What completes a response as it leaves; that of HEAD loses its body.

    Parameters
    ----------
    writes : collection of str
        Templates of the paths whose POST writes, which pages of other origins may not do.
    """

    async def complete(message: Message, scope: Scope) -> None:
        method = scope.get("method")
        if message["type"] == "http.response.start":
            is_write = scope.get("path_template") in writes
            own = message["headers"]
            headers = [*own, (b"x-request-id", request_id_of(scope).encode()), *_SAFE]
            if all(name != _POLICY[0] for name, _ in own):
                headers.append(_POLICY)
            if not (is_write and method == "POST"):
                headers += _READABLE
            if method == "OPTIONS":
                headers += (*_PREFLIGHT, _MAY_READ if is_write else _MAY_ASK)
            headers += scope["state"].get("headers", ())
            message["headers"] = headers
        elif message["type"] == "http.response.body" and method == "HEAD":
            message["body"] = b""

    return complete
