"""Answers that were made before: kept in memory as they left, the one not asked for the longest dropped first."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final

# What an entry takes beside its body.
_ENTRY_BYTES: Final = 400
# Words take less than this; they may be many more than the bodies, which are dropped first.
_BYTES_PER_WORDS: Final = 3200


class Answers:
    """Bodies by entity tag, and tags by the words they were asked for with.

    A tag names all that an answer depends on, so a body never goes stale; whoever looks up words puts into
    them all that their tag depends on.

    Parameters
    ----------
    looked_up : callable
        Told at each look-up of a body whether it is held.
    most_bytes : int
        What all bodies together may take, and at most as much words and tags beside them; a body of more than a
        tenth of it is not kept. [B]
    """

    def __init__(self, looked_up: Callable[[bool], None], most_bytes: int) -> None:
        self._looked_up = looked_up
        self._most_bytes = most_bytes
        self._most_words = most_bytes // _BYTES_PER_WORDS
        self._held_bytes = 0
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._tags: OrderedDict[Hashable, tuple[str, str]] = OrderedDict()
        self._lock = Lock()

    def held(self, tag: str) -> bytes | None:
        """The body of a tag, None where it is not held."""
        with self._lock:
            body = self._bodies.get(tag)
            if body is not None:
                self._bodies.move_to_end(tag)
            return body

    def body(self, tag: str, make: Callable[[], bytes]) -> bytes:
        """The body of a tag, made where it is not held."""
        held = self.held(tag)
        self._looked_up(held is not None)
        if held is not None:
            return held
        made = make()
        self._keep(tag, made)
        return made

    def asked(self, words: Hashable) -> tuple[str, str] | None:
        """Tag and content type of what was asked for in these words, None where nothing was."""
        return self._tags.get(words)

    def remember(self, words: Hashable, tag: str, content_type: str) -> None:
        """Hold what words ask for."""
        with self._lock:
            self._tags[words] = tag, content_type
            if len(self._tags) > self._most_words:
                self._tags.popitem(last=False)

    def _keep(self, tag: str, body: bytes) -> None:
        if len(body) > self._most_bytes // 10:
            return
        with self._lock:
            if tag not in self._bodies:
                self._held_bytes += len(body) + _ENTRY_BYTES
            self._bodies[tag] = body
            while self._held_bytes > self._most_bytes:
                _, dropped = self._bodies.popitem(last=False)
                self._held_bytes -= len(dropped) + _ENTRY_BYTES
