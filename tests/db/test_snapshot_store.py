"""The newest catalog stays in memory, whatever the database does."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine

from costsvc.db.engine import make_engine
from costsvc.db.entries import CatalogContent
from costsvc.db.repository import CatalogRepository
from costsvc.db.snapshot_store import SnapshotStore
from costsvc.errors import NotInCatalog, Unavailable
from tests.db.examples import CONTENT, DAY, offer, with_offers


class Shelf:
    """Catalogs by revision in place of a database, which can be away."""

    def __init__(self, *contents: CatalogContent) -> None:
        self.contents = list(contents)
        self.away = False
        self.looks = 0
        self.loads: list[int | None] = []

    def newest_revision(self) -> int | None:
        self.looks += 1
        if self.away:
            raise Unavailable("away")
        return len(self.contents) or None

    def load(self, revision: int | None = None) -> CatalogContent:
        self.loads.append(revision)
        if self.away:
            raise Unavailable("away")
        assert revision is not None
        if not 1 <= revision <= len(self.contents):
            raise NotInCatalog("revision", str(revision), [])
        return self.contents[revision - 1]

    def load_after(self, known: CatalogContent, known_revision: int, revision: int) -> CatalogContent:
        raise AssertionError("without a hash of its contents nothing is known to be of the same history")

    def content_hash(self, revision: int) -> str | None:
        return None


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def priced(usd: str) -> CatalogContent:
    return with_offers(CONTENT, offer("X", [(DAY, usd)]))


def store_of(shelf: Shelf, **options: float | int) -> tuple[SnapshotStore, Clock]:
    clock = Clock()
    kept = int(options.get("kept_revisions", 4))
    store = SnapshotStore(shelf, clock=clock, poll_s=options.get("poll_s", 1.0), kept_revisions=kept)
    store.refresh()
    return store, clock


def wait_until(condition: Callable[[], bool], within_s: float) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {within_s} s"
        time.sleep(0.01)


def test_a_new_revision_replaces_the_catalog_and_an_unchanged_one_is_not_read_again() -> None:
    shelf = Shelf(priced("1"))
    store, _ = store_of(shelf)
    before = store.current
    store.refresh()
    assert store.current is before
    shelf.contents.append(priced("2"))
    store.refresh()
    assert (before.revision, store.current.revision) == (1, 2)
    assert shelf.loads == [1, 2]


def test_the_old_catalog_serves_on_while_the_database_is_away_and_says_since_when() -> None:
    shelf = Shelf(priced("1"))
    store, clock = store_of(shelf)
    assert store.stale_seconds == 0.0
    shelf.away = True
    clock.now_s = 110.0
    store.refresh()
    clock.now_s = 117.5
    store.refresh()
    assert store.current.revision == 1
    assert store.stale_seconds == 7.5
    shelf.away = False
    shelf.contents.append(priced("2"))
    store.refresh()
    assert (store.current.revision, store.stale_seconds) == (2, 0.0)


def test_a_revision_that_cannot_be_read_leaves_the_old_one_in_place(caplog: pytest.LogCaptureFixture) -> None:
    shelf = Shelf(priced("1"))
    store, clock = store_of(shelf)
    shelf.contents.append(None)  # type: ignore[arg-type]
    store.refresh()
    store.refresh()
    clock.now_s = 104.0
    assert (store.current.revision, store.stale_seconds) == (1, 4.0)
    # Said once, not at each look.
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_before_the_first_catalog_there_is_an_error_that_says_how_to_load_one() -> None:
    store, _ = store_of(Shelf())
    with pytest.raises(Unavailable, match="costsvc catalog load"):
        store.at(None)


def test_older_revisions_are_read_on_demand_and_the_last_used_are_kept() -> None:
    shelf = Shelf(*(priced(str(n)) for n in range(1, 6)))
    store, _ = store_of(shelf, kept_revisions=2)
    assert store.at(None) is store.at(5) is store.current
    first = store.at(1)
    store.at(2)
    assert store.at(1) is first
    store.at(3)
    assert store.at(1) is first
    store.at(2)
    assert shelf.loads == [5, 1, 2, 3, 2]
    assert first.reference_price("h100-sxm", DAY).usd_per_gpu_hour == 1


def test_a_kept_revision_is_answered_while_the_database_is_away_and_another_is_not() -> None:
    shelf = Shelf(priced("1"), priced("2"), priced("3"))
    store, _ = store_of(shelf)
    store.at(1)
    shelf.away = True
    assert store.at(1).revision == 1
    with pytest.raises(Unavailable):
        store.at(2)


def test_another_database_at_the_same_address_is_not_mixed_with_the_one_before() -> None:
    shelf = Shelf(priced("1"), priced("2"), priced("3"))
    store, _ = store_of(shelf)
    store.at(1)
    shelf.contents = [priced("7"), priced("8")]
    store.refresh()
    assert store.current.revision == 2
    assert store.at(1).reference_price("h100-sxm", DAY).usd_per_gpu_hour == 7


def test_many_threads_read_one_old_revision_once() -> None:
    shelf = Shelf(priced("1"), priced("2"))
    store, _ = store_of(shelf)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: id(store.at(1)), range(40)))
    assert len(found) == 1
    assert shelf.loads == [2, 1]


def test_the_background_thread_looks_at_its_pace_and_ends_when_told() -> None:
    shelf = Shelf(priced("1"))
    store = SnapshotStore(shelf, poll_s=0.05)
    others = set(threading.enumerate())
    with store:
        wait_until(lambda: shelf.looks >= 3, within_s=5)
        begun, used_s = time.monotonic(), time.process_time()
        looks = shelf.looks
        time.sleep(0.5)
        assert shelf.looks - looks <= (time.monotonic() - begun) / 0.05 + 1
        assert time.process_time() - used_s < 0.25
    ended = shelf.looks
    time.sleep(0.15)
    assert shelf.looks == ended
    assert "catalog" not in {thread.name for thread in set(threading.enumerate()) - others}


def test_a_store_can_be_started_again() -> None:
    shelf = Shelf(priced("1"))
    store = SnapshotStore(shelf, poll_s=0.01)
    for revision in (2, 3):
        with store:
            shelf.contents.append(priced("2"))
            wait_until(lambda: store.current.revision == revision, within_s=5)  # noqa: B023 - waited for here


@pytest.fixture
def reader(engine: Engine) -> Iterator[CatalogRepository]:
    """A repository on connections of its own, so that its database can be taken away."""
    own = make_engine(engine.url.render_as_string(hide_password=False))
    yield CatalogRepository(own)
    own.dispose()


def test_a_new_revision_is_served_within_two_seconds(
    repository: CatalogRepository, reader: CatalogRepository
) -> None:
    repository.store(priced("1"), author="me", note="")
    with SnapshotStore(reader) as store:
        assert store.current.reference_price("h100-sxm", DAY).usd_per_gpu_hour == 1
        repository.store(priced("2"), author="me", note="")
        wait_until(lambda: store.current.revision == 2, within_s=2)
        assert store.current.reference_price("h100-sxm", DAY).usd_per_gpu_hour == 2
        assert store.at(1).reference_price("h100-sxm", DAY).usd_per_gpu_hour == 1
        with pytest.raises(NotInCatalog, match="revisions 1 to 2"):
            store.at(3)


def test_the_catalog_outlives_its_database(
    repository: CatalogRepository, engine: Engine, reader: CatalogRepository
) -> None:
    repository.store(priced("1"), author="me", note="")
    with SnapshotStore(reader, poll_s=0.05) as store:
        with engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE revision RENAME TO taken_away")
        wait_until(lambda: store.stale_seconds > 0, within_s=5)
        assert store.current.reference_price("h100-sxm", DAY).usd_per_gpu_hour == 1
        with engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE taken_away RENAME TO revision")
        wait_until(lambda: store.stale_seconds == 0, within_s=5)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_lost_connection_is_replaced(
    repository: CatalogRepository, engine: Engine, reader: CatalogRepository
) -> None:
    repository.store(priced("1"), author="me", note="")
    assert reader.newest_revision() == 1
    with engine.connect() as connection:
        ended = connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).all()
    assert ended == [(True,)]
    assert reader.newest_revision() == 1


def test_a_new_revision_is_read_as_its_difference(
    engine: Engine, repository: CatalogRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.store(CONTENT, author="me", note="")
    store = SnapshotStore(repository)
    store.refresh()
    monkeypatch.setattr(repository, "load", _not_the_whole)
    repository.store(priced("2.00"), author="me", note="")
    store.refresh()
    assert store.current.revision == 2
    assert store.current.content == priced("2.00")


def test_a_database_of_another_history_is_read_whole(
    repository: CatalogRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.store(CONTENT, author="me", note="")
    store = SnapshotStore(repository)
    store.refresh()
    repository.store(priced("2.00"), author="me", note="")
    monkeypatch.setattr(repository, "content_hash", lambda revision: f"other {revision}")
    monkeypatch.setattr(repository, "load_after", _not_the_whole)
    store.refresh()
    assert store.current.content == priced("2.00")


def _not_the_whole(*_: object) -> CatalogContent:
    raise AssertionError("read otherwise")
