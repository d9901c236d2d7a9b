"""What handlers work with, in one piece: Litestar starts a task for each dependency of several."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from costsvc.db.keys import KeyRepository
from costsvc.db.quotes import QuoteRepository
from costsvc.db.repository import CatalogRepository
from costsvc.db.snapshot import Catalog
from costsvc.db.snapshot_store import SnapshotStore


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of a running service. `today` answers the day whose prices hold where none is asked for.

    `validation` is what the shipped accuracy report says, where the catalog folder has one.
    """

    snapshots: SnapshotStore
    repository: CatalogRepository
    keys: KeyRepository
    quotes: QuoteRepository
    today: Callable[[], date]
    validation: Mapping[str, Any] | None

    @property
    def catalog(self) -> Catalog:
        """The newest catalog in memory."""
        return self.snapshots.current
