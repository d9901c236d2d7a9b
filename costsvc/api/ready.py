"""Responses that are ready: their headers and their body leave as they stand."""

from typing import Any, TypeAlias

from litestar import Response
from litestar.types import Receive, Scope, Send

Header: TypeAlias = tuple[bytes, bytes]


class Ready(Response[bytes]):
    """A response of which the framework has nothing left to write.

    Of other responses it writes one header after the other and looks for each whether it is there, some 30 µs
    beside a new quote.
    """

    def __init__(self, status: int, headers: tuple[Header, ...], body: bytes) -> None:
        # What the base class prepares is for the writing that is left out.
        self._status = status
        self._headers = headers
        self._body = body

    def to_asgi_response(self, *_: Any, **__: Any) -> Any:
        """Itself."""
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": self._status, "headers": self._headers})
        await send({"type": "http.response.body", "body": self._body, "more_body": False})
