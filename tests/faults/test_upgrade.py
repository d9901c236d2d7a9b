"""A fleet goes from the last code before the newest migration to this one, a replica at a time, under load."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from costsvc.db.engine import make_engine
from costsvc.db.repository import CatalogRepository
from costsvc.db.schema import newest_schema
from costsvc.db.snapshot import Catalog
from costsvc.quoting.given import from_query
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from tests.docs.pages import ROOT
from tests.engine.shapes import TODAY
from tests.faults.conftest import PATHS, SETTINGS, running
from tests.faults.load import Load
from tests.faults.postgres import OwnPostgres
from tests.faults.processes import Nginx, OwnRedis, Replica, once, run
from tests.faults.test_fleet import stored

ASKED = PATHS[::4]
COMPILED_WITHIN_S = 300
FORMATS = ("", ".csv", ".xml", ".xlsx")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code as it was before the newest migration."""
    folder = tmp_path_factory.mktemp("before")
    added = _git("log", "-1", "--diff-filter=A", "--format=%H", "--", "migrations/versions").decode().strip()
    archive = _git("archive", f"{added}^", "costsvc", "migrations", "catalog")
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    return folder


def _git(*arguments: str) -> bytes:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("the history of the code is not here")
    done = subprocess.run([git, *arguments], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"the history of the code is not here: {done.stderr.decode()}")
    return done.stdout


class Versions:
    """Right answers of both versions by path and revision: the old one's as it gave them, ours computed here."""

    def __init__(self, engine: Engine) -> None:
        self.old: dict[tuple[str, int], Mapping[str, Any]] = {}
        self._catalogs = CatalogRepository(engine)
        self._known: dict[tuple[str, int], Mapping[str, Any]] = {}
        self._read: dict[int, Catalog] = {}

    def ask_the_old_one(self, replica: Replica) -> None:
        """Hold what it answers to every path now."""
        for path in ASKED:
            answer = httpx.get(f"{replica.address}{path}", timeout=60).raise_for_status().json()
            self.old[path, answer["catalog_revision"]] = answer

    def expected(self, path: str, revision: int) -> list[Mapping[str, Any]]:
        """What either version may answer."""
        old = self.old.get((path, revision))
        return [*([] if old is None else [old]), self._ours(path, revision)]

    def _ours(self, path: str, revision: int) -> Mapping[str, Any]:
        if (path, revision) not in self._known:
            if revision not in self._read:
                self._read[revision] = Catalog(self._catalogs.load(revision), revision)
            asked = parse_request(from_query(path.partition("?")[2]))
            self._known[path, revision] = make_quote(self._read[revision], asked, TODAY)
        return self._known[path, revision]


def test_replicas_change_one_at_a_time_while_reads_and_writes_go_on(
    before: Path, postgres: OwnPostgres, folder: Path
) -> None:
    run("db", "upgrade", code=before, database_url=postgres.url)
    run("catalog", "load", code=before, database_url=postgres.url)
    words = "keys create --scope quote --label tests --owner finance"
    key = run(*words.split(), code=before, database_url=postgres.url)
    redis = OwnRedis(folder)
    settings = {**SETTINGS, "database_url": postgres.url, "redis_url": redis.url}
    replicas = [Replica(folder, f"replica-{number}", settings, before) for number in (1, 2, 3)]
    nginx = Nginx(folder, [one.port for one in replicas])
    engine = make_engine(postgres.url)
    versions = Versions(engine)
    # The first to start compiles for all: another version has files of its own for that.
    with running(redis, replicas[0], within_s=COMPILED_WITHIN_S), running(*replicas[1:], nginx):
        assert _schema(engine) != newest_schema()
        versions.ask_the_old_one(replicas[0])
        with Load(nginx.address, key, ASKED, versions.expected) as load:
            once(lambda: len(load.seen.kept) > 1, "the old version answers")
            run("db", "upgrade", database_url=postgres.url)
            assert _schema(engine) == newest_schema()
            _goes_on(load, "on the new schema")
            first = next(iter(load.seen.kept.values()))
            held = _formats(replicas[0], first, key)
            for replica in replicas:
                replica.kill(replica.ends_at)
                replica.upgrade()
                replica.start()
                once(replica.is_answering, "the new version answers")
                _goes_on(load, "with one replica more of the new version")
            assert _formats(replicas[0], first, key) == held
            run("catalog", "load", database_url=postgres.url)
            _goes_on(load, "with the new catalog")
    seen = load.seen
    print(f"reads {dict(seen.reads)}, writes {dict(seen.writes)}, kept {len(seen.kept)}, {seen.revisions}")
    assert seen.wrong == []
    assert seen.failed_reads == 0, seen.reads
    assert set(seen.writes) <= {"201", "502", "503", "broken"}, seen.writes
    assert stored(engine).items() >= seen.kept.items()
    engine.dispose()


def _schema(engine: Engine) -> str:
    with engine.connect() as connection:
        return str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one())


def _goes_on(load: Load, when: str) -> None:
    reads, kept = load.progress(), len(load.seen.kept)
    once(lambda: load.progress() > reads + 5 and len(load.seen.kept) > kept, f"reads and writes go on {when}")


def _formats(replica: Replica, id: str, key: str) -> list[bytes]:
    """A stored quote in every format, as a replica gives it."""
    headers = {"X-API-Key": key}
    return [
        httpx.get(f"{replica.address}/quotes/{id}{suffix}", headers=headers, timeout=60)
        .raise_for_status()
        .content
        for suffix in FORMATS
    ]
