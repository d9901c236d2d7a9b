"""A thread that looks at the database again and again, while requests are answered from memory."""

from collections.abc import Callable
from threading import Event, Thread

_LONGEST_STOP_S = 5.0


class Follower:
    """Calls `look` after each pause, from `start` to `stop`.

    Parameters
    ----------
    look : callable
        One look; it never raises.
    pause_s : float
        Pause between two looks. [s]
    """

    def __init__(self, look: Callable[[], None], *, pause_s: float, name: str) -> None:
        self._look = look
        self._pause_s = pause_s
        self._name = name
        self._stopped = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begin to look in the background."""
        self._stopped.clear()
        self._thread = Thread(target=self._follow, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, after a look that it is at."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(_LONGEST_STOP_S)
            self._thread = None

    def _follow(self) -> None:
        while not self._stopped.wait(self._pause_s):
            self._look()
