"""While parts of a fleet fail, reads go on and are right, and no stored quote is lost or doubled.

`make faults` tries every fault, several times; here two happen once.
"""

import os
import time
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Engine, text

from costsvc.db.quotes import QuoteRepository, QuoteSearch, Reader
from tests.faults.conftest import Fleet
from tests.faults.load import Load
from tests.faults.processes import once, run

REPEATS = int(os.environ.get("COSTSVC_TEST_REPEATS", "1"))
LASTS_S = 1.0
SOON_S = 30.0
MOST_LISTED = 1000


def a_replica_is_killed(fleet: Fleet, load: Load) -> None:
    victim = fleet.replicas[load.progress() % len(fleet.replicas)]
    victim.kill()
    time.sleep(LASTS_S)
    victim.start()
    once(victim.is_answering, "the replica is back")


def connections_end(fleet: Fleet, load: Load) -> None:
    for _ in range(3):
        fleet.end_connections()
        time.sleep(LASTS_S / 4)


def the_database_restarts(fleet: Fleet, load: Load) -> None:
    """As on a day of maintenance: sessions are cut off, and for a while nothing listens."""
    fleet.postgres.kill(fleet.postgres.ends_at)
    replicas_say_since_when(fleet)
    fleet.postgres.start()
    once(fleet.postgres.is_answering, "PostgreSQL is back")


def the_database_crashes(fleet: Fleet, load: Load) -> None:
    """In the middle of writes, so that it recovers from its log before it answers."""
    fleet.postgres.crash()
    fleet.postgres.start()
    once(fleet.postgres.is_answering, "PostgreSQL is back")


def the_database_refuses(fleet: Fleet, load: Load) -> None:
    fleet.postgres.execute("ALTER DATABASE costsvc ALLOW_CONNECTIONS false")
    try:
        fleet.end_connections()
        replicas_say_since_when(fleet)
    finally:
        fleet.postgres.execute("ALTER DATABASE costsvc ALLOW_CONNECTIONS true")


def replicas_say_since_when(fleet: Fleet) -> None:
    """Every replica says that the database is away, and for a growing time."""
    once(lambda: fleet.all_say(database_reachable=False), "replicas say that the database is away")
    before = [one.ready() for one in fleet.replicas]
    time.sleep(LASTS_S)
    for earlier, later in zip(before, [one.ready() for one in fleet.replicas], strict=True):
        assert earlier is not None
        assert later is not None
        assert float(str(later["stale_seconds"])) > float(str(earlier["stale_seconds"])) >= 0


def redis_goes_away(fleet: Fleet, load: Load) -> None:
    fleet.redis.kill()
    once(lambda: fleet.all_say(limits="per process"), "replicas limit for themselves")
    time.sleep(LASTS_S)
    fleet.redis.start()
    once(fleet.redis.is_answering, "Redis is back")


def connections_of_the_pools_run_out(fleet: Fleet, load: Load) -> None:
    """Whoever writes waits for a lock with a connection in hand, until each replica has none left."""
    with fleet.engine.begin() as holding:
        holding.execute(text("LOCK TABLE stored_quote IN ACCESS EXCLUSIVE MODE"))
        time.sleep(3 * LASTS_S)


def the_schema_grows(fleet: Fleet, load: Load) -> None:
    """As a migration does: a column and an index more, and the command beside it."""
    name = f"added_{len(fleet.known)}_{load.progress()}"
    with fleet.engine.begin() as migrating:
        migrating.execute(text(f"ALTER TABLE stored_quote ADD COLUMN {name} text"))
        migrating.execute(text(f"CREATE INDEX ix_{name} ON stored_quote ({name})"))
        time.sleep(LASTS_S / 4)
    run("db", "upgrade", database_url=fleet.postgres.url)


def a_catalog_is_loaded(fleet: Fleet, load: Load) -> None:
    revision = fleet.publish(f"{2 + len(fleet.catalogs) / 100:.2f}")
    once(lambda: fleet.all_say(catalog_revision=revision), "every replica has the new catalog")
    once(lambda: revision in load.seen.revisions, "callers see it")


OFTEN: tuple[Callable[[Fleet, Load], None], ...] = (a_replica_is_killed, the_database_restarts)
FAULTS = (
    OFTEN
    if REPEATS == 1
    else (
        *OFTEN,
        the_database_crashes,
        the_database_refuses,
        connections_end,
        redis_goes_away,
        connections_of_the_pools_run_out,
        the_schema_grows,
        a_catalog_is_loaded,
    )
)


@pytest.fixture(scope="module", autouse=True)
def recovered(fleet: Fleet) -> Iterator[None]:
    """At the end all is as at the start."""
    yield
    assert fleet.all_say(ready=True, database_reachable=True, limits="shared")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_reads_go_on_and_what_is_stored_is_stored_once(
    fleet: Fleet, fault: Callable[[Fleet, Load], None]
) -> None:
    before = len(stored(fleet.engine))
    with fleet.load() as load:
        once(lambda: load.progress() > 5, "callers are answered")
        for _ in range(REPEATS):
            fault(fleet, load)
            once(
                lambda: fleet.all_say(database_reachable=True, stale_seconds=0.0, limits="shared"),
                "all is as before",
                SOON_S,
            )
        reads, kept = load.progress(), len(load.seen.kept)
        once(lambda: load.progress() > reads and len(load.seen.kept) > kept, "reads and writes go on")
    seen = load.seen
    print(f"{fault.__name__}: reads {dict(seen.reads)}, writes {dict(seen.writes)}, kept {len(seen.kept)}")
    assert seen.wrong == []
    assert seen.failed_reads == 0, seen.reads
    assert set(seen.writes) <= {"201", "502", "503", "broken"}, seen.writes
    now = stored(fleet.engine)
    assert now.items() >= seen.kept.items()
    assert len(now) - before <= len(seen.begun)


def stored(engine: Engine) -> dict[str, str]:
    """Every stored quote of the owner by its label, which stands once."""
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT label, id FROM stored_quote")).all()
    by_label = {str(label): str(id) for label, id in rows}
    assert len(by_label) == len(rows), "a quote is stored twice"
    listed = QuoteRepository(engine).listed(QuoteSearch(limit=MOST_LISTED), Reader("owner finance"))
    assert {one.id for one in listed} <= set(by_label.values())
    return by_label
