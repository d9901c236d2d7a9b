"""Work that takes seconds, so much at a time: what comes on top waits its turn, and beyond that is refused at once."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, TypeVar

from litestar.concurrency import sync_to_thread

from costsvc.errors import Overloaded

T = TypeVar("T")

_LONGEST_WAIT_S: Final = 30.0
_LONGEST_ADVICE_S: Final = 60
# Weight of the newest in the mean of durations.
_NEWEST: Final = 0.2


class HeavyWork:
    """Turns for threads that compute.

    Parameters
    ----------
    running : int
        Threads that compute at a time.
    waiting : int
        Requests that may wait for a turn; one more is refused.
    """

    def __init__(self, *, running: int, waiting: int, longest_wait_s: float = _LONGEST_WAIT_S) -> None:
        self._running = running
        self._most_waiting = waiting
        self._longest_wait_s = longest_wait_s
        self._turns = asyncio.Semaphore(running)
        self._inside = 0
        self._mean_s = 1.0
        self.waiting = 0
        self.refused = 0

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place for a whole request, from before its body is read until its answer is sent.

        Raises
        ------
        Overloaded
            All are taken.
        """
        if self._inside >= self._running + self._most_waiting:
            raise self._overload(self._inside - self._running)
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` computes in a thread, when it is its turn.

        Raises
        ------
        Overloaded
            Too many wait already, or the turn did not come.
        """
        if self._turns.locked() and self.waiting >= self._most_waiting:
            raise self._overload(self.waiting)
        try:
            async with asyncio.timeout(self._longest_wait_s) as patience, self._turn():
                patience.reschedule(None)
                return await sync_to_thread(work)
        except TimeoutError:
            raise self._overload(self.waiting) from None

    async def pieces(self, made: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Each piece of an answer made in a thread, when it is its turn: long answers do not hold up short ones."""
        while True:
            async with self._turn():
                piece = await sync_to_thread(next, made, None)
            if piece is None:
                return
            yield piece

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        self.waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self.waiting -= 1
        begun_s = time.monotonic()
        try:
            yield
        finally:
            self._turns.release()
            self._mean_s += _NEWEST * (time.monotonic() - begun_s - self._mean_s)

    def _overload(self, before: int) -> Overloaded:
        self.refused += 1
        soon_s = min(_LONGEST_ADVICE_S, max(1, math.ceil(self._mean_s * (before + 1) / self._running)))
        return Overloaded(
            f"The service computes {self._running} long answers at a time and {before} more wait; at most "
            f"{self._most_waiting} may. Ask again in {soon_s} s.",
            details={"running": self._running, "most_waiting": self._most_waiting, "retry_after_s": soon_s},
        )
