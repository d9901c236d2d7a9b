"""Keeps the newest catalog in memory while the database changes, stalls or goes away."""

import gc
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from types import TracebackType
from typing import Protocol, Self

from costsvc.db.entries import CatalogContent
from costsvc.db.follower import Follower
from costsvc.db.private_book import PrivateBook
from costsvc.db.snapshot import Catalog
from costsvc.errors import Unavailable

_KEPT_REVISIONS = 4

_log = logging.getLogger(__name__)


class Loader(Protocol):
    """Where catalogs come from; `CatalogRepository` is one."""

    def newest_revision(self) -> int | None:
        """Number of the newest revision, or None before the first."""

    def load(self, revision: int | None = None) -> CatalogContent:
        """The catalog at a revision."""

    def load_after(self, known: CatalogContent, known_revision: int, revision: int) -> CatalogContent:
        """A later revision, read as its difference from one that is known."""

    def content_hash(self, revision: int) -> str | None:
        """What a revision holds, in brief."""


class SnapshotStore:
    """The newest catalog, replaced as a whole by a thread that looks for a new revision again and again.

    A request takes one `Catalog` and keeps it, so a replacement never shows within an answer.

    Parameters
    ----------
    clock : callable
        Seconds that only grow. [s]
    private : PrivateBook, optional
        What owners negotiated; it is kept as fresh as the catalog.
    poll_s : float
        Pause between two looks. [s]
    """

    def __init__(
        self,
        loader: Loader,
        *,
        private: PrivateBook | None = None,
        clock: Callable[[], float] = time.monotonic,
        poll_s: float = 1.0,
        kept_revisions: int = _KEPT_REVISIONS,
    ) -> None:
        self._loader = loader
        self._private = private
        self._clock = clock
        self._kept_revisions = kept_revisions
        self._current: Catalog | None = None
        self._lost_at_s: float | None = None
        self._older: OrderedDict[int, Catalog] = OrderedDict()
        self._refreshing = Lock()
        self._keeping = Lock()
        self._follower = Follower(self.refresh, pause_s=poll_s, name="catalog")

    @property
    def current(self) -> Catalog:
        """The newest catalog that was read.

        Raises
        ------
        Unavailable
            None was read yet.
        """
        if self._current is None:
            raise Unavailable(
                "No catalog has been read yet. Check the database, and load one: `costsvc catalog load`."
            )
        return self._current

    @property
    def revision(self) -> int | None:
        """Revision of the newest catalog that was read, or None before the first."""
        return None if self._current is None else self._current.revision

    @property
    def stale_seconds(self) -> float:
        """How long the database has not answered; 0 while it does. [s]"""
        lost_at_s = self._lost_at_s
        return 0.0 if lost_at_s is None else self._clock() - lost_at_s

    def refresh(self) -> None:
        """Look once for a new revision and take it; on failure the old catalog stays."""
        with self._refreshing:
            looked_at_s = self._clock()
            try:
                self._take_newest()
                if self._private is not None:
                    self._private.refresh()
            except Exception:
                # Whatever it is, a service that can still quote goes on quoting, and says since when.
                if self._lost_at_s is None:
                    self._lost_at_s = looked_at_s
                    _log.exception("The catalog cannot be read; quoting goes on from what is in memory")
            else:
                if self._lost_at_s is not None:
                    _log.info("The catalog can be read again after %.0f s", self.stale_seconds)
                self._lost_at_s = None

    def at(self, revision: int | None) -> Catalog:
        """The catalog at a revision, or the newest. Older ones are read on demand and a few are kept.

        Raises
        ------
        NotInCatalog
            There is no such revision; the known range is named.
        Unavailable
            It is not in memory and the database does not answer.
        """
        current = self.current
        if revision is None or revision == current.revision:
            return current
        with self._keeping:
            if (kept := self._older.get(revision)) is not None:
                self._older.move_to_end(revision)
                return kept
            catalog = Catalog(self._loader.load(revision), revision, self._loader.content_hash(revision))
            self._older[revision] = catalog
            if len(self._older) > self._kept_revisions:
                self._older.popitem(last=False)
            return catalog

    def seen_by(
        self, owner: str, revision: int | None = None, private_revision: int | None = None
    ) -> Catalog:
        """The same with what an owner negotiated, as of a revision of that owner's own, or the newest.

        Raises
        ------
        NotInCatalog, Unavailable
            As `at`.
        """
        catalog = self.at(revision)
        return catalog if self._private is None else self._private.seen(catalog, owner, private_revision)

    def start(self) -> None:
        """Read the catalog, then keep it fresh in the background until `stop`."""
        self.refresh()
        self._follower.start()

    def stop(self) -> None:
        """End the background thread; the catalog stays readable."""
        self._follower.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _take_newest(self) -> None:
        newest = self._loader.newest_revision()
        known = self.revision
        if newest == known:
            return
        if newest is None or (known is not None and newest < known):
            # Another database is behind the same address: what was read before is not its history.
            with self._keeping:
                self._older.clear()
        if newest is not None:
            self._current = self._read(newest)
            # A million prices are as many objects, none of which is ever part of a cycle: without this each full
            # collection of garbage would walk through them while requests wait.
            gc.freeze()
            if self._private is not None:
                self._private.forget()

    def _read(self, revision: int) -> Catalog:
        """A revision, as its difference from the current one where that is of the same history."""
        loader, current = self._loader, self._current
        content_hash = loader.content_hash(revision)
        if (
            current is not None
            and current.revision is not None
            and current.revision < revision
            and current.content_hash is not None
            and loader.content_hash(current.revision) == current.content_hash
        ):
            content = loader.load_after(current.content, current.revision, revision)
            return current.followed_by(content, revision, content_hash)
        return Catalog(loader.load(revision), revision, content_hash)
