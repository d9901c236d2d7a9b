"""Limits of one input: time that a processor spends on it, and memory of the whole run."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LONGEST_S: Final = 10.0
MORE_BYTES: Final = 2 * 1024**3


class TookTooLong(Exception):
    """An input kept the processor busy beyond its limit."""


@contextmanager
def bounded_time(longest_s: float = LONGEST_S) -> Iterator[None]:
    """Raise `TookTooLong` where the processor, not the clock, says so: other work on the machine does not count."""

    def end(*_: object) -> None:
        raise TookTooLong(f"more than {longest_s:g} s of processor time")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, longest_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def bound_memory(more_bytes: int = MORE_BYTES) -> None:
    """Let this process take so much more memory than it has, and no more: what asks for it gets a MemoryError."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
