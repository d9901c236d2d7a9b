"""Every owner's prices in memory, and the catalog as each owner sees it."""

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Final, Protocol

from costsvc.db.entries import PrivatePrices
from costsvc.db.snapshot import Catalog

_KEPT_VIEWS: Final = 64


class PrivateLoader(Protocol):
    """Where private prices come from; `PrivateRepository` is one."""

    def newest(self) -> int:
        """Grows with each write of any owner."""

    def changed_since(self, newest: int) -> Mapping[str, int]:
        """Owners who wrote after `newest`, and the revision that each has now."""

    def load(self, owner: str, revision: int) -> PrivatePrices:
        """An owner's prices as they were."""


class PrivateBook:
    """What each owner negotiated. A catalog without private prices is its own view: nothing is copied."""

    def __init__(self, loader: PrivateLoader) -> None:
        self._loader = loader
        self._known = 0
        self._prices: dict[str, PrivatePrices] = {}
        self._views: OrderedDict[tuple[Catalog, PrivatePrices], Catalog] = OrderedDict()
        self._keeping = Lock()

    def refresh(self) -> None:
        """Take what owners wrote since the last look."""
        newest = self._loader.newest()
        if newest == self._known:
            return
        if newest < self._known:
            # Another database is behind the same address: what was read before is nobody's there.
            self._prices, self._known = {}, 0
        changed = self._loader.changed_since(self._known)
        loaded = {owner: self._loader.load(owner, number) for owner, number in changed.items()}
        self._prices = {**self._prices, **loaded}
        self._known = newest
        self.forget()

    def seen(self, catalog: Catalog, owner: str, revision: int | None = None) -> Catalog:
        """A catalog with an owner's prices beside the public ones.

        Parameters
        ----------
        revision : int or None
            Of the owner's prices; None is the newest. An older one is read from the database.

        Raises
        ------
        NotInCatalog
            This owner has no such revision.
        Unavailable
            It is not in memory and the database does not answer.
        """
        prices = self._prices.get(owner)
        if revision is not None and (prices is None or prices.revision != revision):
            return catalog.seen_with(self._loader.load(owner, revision))
        return catalog if prices is None else self._view(catalog, prices)

    def forget(self) -> None:
        """Let go of views; they are made anew of what is asked for."""
        with self._keeping:
            self._views.clear()

    def _view(self, catalog: Catalog, prices: PrivatePrices) -> Catalog:
        key = (catalog, prices)
        with self._keeping:
            if (kept := self._views.get(key)) is not None:
                self._views.move_to_end(key)
                return kept
            view = self._views[key] = catalog.seen_with(prices)
            if len(self._views) > _KEPT_VIEWS:
                self._views.popitem(last=False)
            return view
