"""Answers that were made before: kept in memory as they left, the one not asked for the longest dropped first."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Final

from costsvc.api.ready import Header, Ready

# What an entry takes beside its body.
_ENTRY_BYTES: Final = 400
# Words take less than this; they may be many more than the bodies, which are dropped first.
_BYTES_PER_WORDS: Final = 3200


@dataclass(frozen=True, slots=True)
class Known:
    """What words ask for: the tag of its body, the headers of an answer with or without it, and what a body is."""

    tag: str
    headers: tuple[Header, ...]
    content_type: bytes

    def unchanged(self) -> Ready:
        """The response to a caller that has the body."""
        return Ready(304, self.headers, b"")

    def with_body(self, body: bytes) -> Ready:
        """The response to any other."""
        of_body = (b"content-type", self.content_type), (b"content-length", b"%d" % len(body))
        return Ready(200, (*self.headers, *of_body), body)


def is_named(tag: str, if_none_match: str) -> bool:
    """Whether a caller says that it has what a tag names."""
    return tag in if_none_match and tag in {
        one.strip().removeprefix("W/") for one in if_none_match.split(",")
    }


class Answers:
    """Bodies by entity tag, and tags by the words they were asked for with.

    A tag names all that an answer depends on, so a body never goes stale; whoever looks up words puts into
    them all that their tag depends on.

    Parameters
    ----------
    looked_up : callable
        Told of each body that is asked for whether it was held.
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
        self._known: OrderedDict[Hashable, Known] = OrderedDict()
        self._lock = Lock()

    def held(self, tag: str) -> bytes | None:
        """The body of a tag, None where it is not held."""
        with self._lock:
            body = self._bodies.get(tag)
            if body is None:
                return None
            self._bodies.move_to_end(tag)
        self._looked_up(True)
        return body

    def body(self, tag: str, make: Callable[[], bytes]) -> bytes:
        """The body of a tag, made where it is not held."""
        held = self.held(tag)
        if held is not None:
            return held
        self._looked_up(False)
        made = make()
        self._keep(tag, made)
        return made

    def asked(self, words: Hashable) -> Known | None:
        """What was asked for in these words before, None where nothing was."""
        return self._known.get(words)

    def remember(self, words: Hashable, known: Known) -> None:
        """Hold what words ask for."""
        with self._lock:
            self._known[words] = known
            if len(self._known) > self._most_words:
                self._known.popitem(last=False)

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
