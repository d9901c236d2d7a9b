"""Bodies arrive within reason: a client that trickles is cut off, and keeps nobody waiting."""

import asyncio
from typing import Final

from litestar.exceptions import HTTPException
from litestar.types import Receive, ReceiveMessage

_LEAST_BYTES_PER_S: Final = 10_000


class Paced:
    """`receive` of a request whose body may take `grace_s`, and time in proportion to what has arrived."""

    def __init__(self, receive: Receive, *, grace_s: float) -> None:
        self._receive = receive
        self._grace_s = grace_s
        self._loop = asyncio.get_running_loop()
        self._begun_s = self._loop.time()
        self._received_bytes = 0
        self._is_whole = False

    async def __call__(self) -> ReceiveMessage:
        """The next piece.

        Raises
        ------
        HTTPException
            408: it did not come in time.
        """
        if self._is_whole:
            # What follows is the end of the connection, for which an answer may wait as long as it likes.
            return await self._receive()
        until_s = self._begun_s + self._grace_s + self._received_bytes / _LEAST_BYTES_PER_S
        try:
            async with asyncio.timeout_at(until_s):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(
                status_code=408,
                detail=f"{self._received_bytes:,} bytes of the body came in {self._loop.time() - self._begun_s:.0f} s. "
                f"Send it within {self._grace_s:g} s, or at {_LEAST_BYTES_PER_S:,} bytes a second or more.",
                headers={"Connection": "close"},
            ) from None
        if message["type"] == "http.request":
            self._received_bytes += len(message["body"])
            self._is_whole = not message.get("more_body", False)
        return message
