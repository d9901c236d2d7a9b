"""Looks at each request as a whole, from its arrival to the end of its answer, whatever becomes of it."""

import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Message, Receive, Scope, Send

# Of the request that is being answered here, also in the threads that work for it; log lines name it.
CURRENT: Final["ContextVar[Scope | None]"] = ContextVar("request", default=None)
# Where the caller was gone before an answer began.
NO_STATUS: Final = 0

Observer: TypeAlias = "Callable[[Scope, int, float], None]"
"""Told of an answered request: its scope, its status and how long it took in seconds."""


class Watch:
    """Around everything, so that it also sees what no handler does: unknown paths, refusals at the door, faults."""

    def __init__(self, app: "ASGIApp", observers: Sequence[Observer]) -> None:
        self._app = app
        self._observers = tuple(observers)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on, and tell the observers how it went."""
        begun_s = time.perf_counter()
        status = NO_STATUS

        async def noted(message: "Message") -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        CURRENT.set(scope)
        try:
            await self._app(scope, receive, noted)
        finally:
            taken_s = time.perf_counter() - begun_s
            for observe in self._observers:
                observe(scope, status, taken_s)
