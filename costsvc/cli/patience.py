"""Connections whose client takes its time are cut off: uvicorn itself waits for headers, and for readers, for ever."""

import asyncio
from functools import cache
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from costsvc.cli.environment import environment

MOST_HEADER_BYTES: Final = 65_536
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b"
)


@cache
def _patience_s() -> float:
    return environment().client_timeout_s


class PatientProtocol(HttpToolsProtocol):
    """Ends a connection whose headers do not arrive in time, or whose client reads nothing of an answer.

    How long it waits is COSTSVC_CLIENT_TIMEOUT_S: uvicorn makes connections itself and has no word for it.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._patience_s = _patience_s()
        # Since when headers have been awaited; None while a request is answered.
        self._awaiting_since_s: float | None = None
        self._header_bytes = 0
        self._unread_bytes = 0
        self._look_again: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for headers."""
        super().connection_made(transport)
        self._awaiting_since_s = self.loop.time()
        self._look_again = self.loop.call_later(self._patience_s, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        super().connection_lost(exc)
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None

    def data_received(self, data: bytes) -> None:
        """Read on, unless the headers have no end."""
        if self._awaiting_since_s is not None:
            self._header_bytes += len(data)
        super().data_received(data)
        if self._awaiting_since_s is not None and self._header_bytes > MOST_HEADER_BYTES:
            said = (
                b"The headers are longer than %d bytes. Send a shorter address, or a POST."
                % MOST_HEADER_BYTES
            )
            self.transport.write(_TOO_LARGE % (len(said), said))
            self.transport.close()

    def on_message_begin(self) -> None:
        """The next request begins to arrive."""
        super().on_message_begin()
        if self._awaiting_since_s is None:
            self._awaiting_since_s = self.loop.time()
            self._header_bytes = 0

    def on_headers_complete(self) -> None:
        """A request can be answered; its body is awaited by whoever reads it."""
        self._awaiting_since_s = None
        super().on_headers_complete()

    def _look(self) -> None:
        now_s, since_s = self.loop.time(), self._awaiting_since_s
        unread_bytes = self.transport.get_write_buffer_size()
        is_late = since_s is not None and now_s - since_s >= self._patience_s
        if is_late or (unread_bytes and unread_bytes == self._unread_bytes):
            self.transport.abort()
            return
        self._unread_bytes = unread_bytes
        self._look_again = self.loop.call_later(self._patience_s / 2, self._look)
