"""What handlers work with, in one piece: Litestar starts a task for each dependency of several."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from costsvc.api.door.buckets import SharedBuckets
from costsvc.api.door.heavy_work import HeavyWork
from costsvc.api.watch.metrics import Metrics
from costsvc.db.private_prices import PrivateRepository
from costsvc.db.quotes import QuoteRepository
from costsvc.db.repository import CatalogRepository
from costsvc.db.snapshot import Catalog
from costsvc.db.snapshot_store import SnapshotStore

# Shorter silences of the database change nothing that a reader should know.
_STALE_AFTER_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of a running service. `today` answers the day whose prices hold where none is asked for.

    `validation` is what the shipped accuracy report says, where the catalog folder has one. `shared` are the
    limits that replicas share, where there is a Redis.
    """

    snapshots: SnapshotStore
    repository: CatalogRepository
    quotes: QuoteRepository
    private: PrivateRepository
    today: Callable[[], date]
    validation: Mapping[str, Any] | None
    points: Callable[[], Sequence[Any]]
    heavy: HeavyWork
    metrics: Metrics
    shared: SharedBuckets | None

    @property
    def catalog(self) -> Catalog:
        """The newest catalog in memory."""
        return self.snapshots.current

    @property
    def is_stale(self) -> bool:
        """Whether the database has been silent for so long that quotes say so."""
        return self.snapshots.stale_seconds > _STALE_AFTER_S

    def show_state(self) -> None:
        """Bring the metrics of what holds now up to date."""
        self.metrics.state(
            revision=self.snapshots.revision,
            stale_s=self.snapshots.stale_seconds,
            waiting=self.heavy.waiting,
            shares_limits=None if self.shared is None else self.shared.is_reached,
        )
