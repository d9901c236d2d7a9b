"""While parts of a fleet fail, reads go on and are right, and no stored quote is lost or doubled.

`make faults` tries every fault, several times; here two happen once.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import text

from costsvc.db.quotes import QuoteRepository, QuoteSearch, Reader
from tests.faults.conftest import Fleet
from tests.faults.load import Load
from tests.faults.processes import once

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


def the_database_goes_away(fleet: Fleet, load: Load) -> None:
    fleet.as_admin(f'ALTER DATABASE "{fleet.database}" ALLOW_CONNECTIONS false')
    try:
        fleet.end_connections()
        once(lambda: fleet.all_say(database_reachable=False), "replicas say that the database is away")
        answers = [one.ready() for one in fleet.replicas]
        time.sleep(LASTS_S)
        later = [one.ready() for one in fleet.replicas]
        for before, after in zip(answers, later, strict=True):
            assert before is not None
            assert after is not None
            assert float(str(after["stale_seconds"])) > float(str(before["stale_seconds"])) >= 0
    finally:
        fleet.as_admin(f'ALTER DATABASE "{fleet.database}" ALLOW_CONNECTIONS true')


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
    done = subprocess.run(
        [sys.executable, "-c", "from costsvc.cli import main; main()", "db", "upgrade"],
        env={
            **os.environ,
            "COSTSVC_DATABASE_URL": fleet.engine.url.set(drivername="postgresql").render_as_string(False),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def a_catalog_is_loaded(fleet: Fleet, load: Load) -> None:
    revision = fleet.publish(f"{2 + len(fleet.catalogs) / 100:.2f}")
    once(lambda: fleet.all_say(catalog_revision=revision), "every replica has the new catalog")
    once(lambda: revision in load.seen.revisions, "callers see it")


OFTEN: tuple[Callable[[Fleet, Load], None], ...] = (a_replica_is_killed, the_database_goes_away)
FAULTS = (
    OFTEN
    if REPEATS == 1
    else (
        *OFTEN,
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
    before = len(stored(fleet))
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
    now = stored(fleet)
    assert now.items() >= seen.kept.items()
    assert len(now) - before <= len(seen.begun)


def stored(fleet: Fleet) -> dict[str, str]:
    """Every stored quote of the owner by its label, which stands once."""
    with fleet.engine.connect() as connection:
        rows = connection.execute(text("SELECT label, id FROM stored_quote")).all()
    by_label = {str(label): str(id) for label, id in rows}
    assert len(by_label) == len(rows), "a quote is stored twice"
    listed = QuoteRepository(fleet.engine).listed(QuoteSearch(limit=MOST_LISTED), Reader("owner finance"))
    assert {one.id for one in listed} <= set(by_label.values())
    return by_label
