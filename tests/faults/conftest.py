"""Three replicas, as `docker-compose.yml` starts them: on one PostgreSQL, with a Redis, behind nginx."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from costsvc.db.engine import make_engine
from costsvc.db.entries import Offer
from costsvc.db.keys import KeyRepository
from costsvc.db.migrate import upgrade
from costsvc.db.repository import CatalogRepository
from costsvc.db.snapshot import Catalog
from costsvc.quoting.given import from_query
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from tests.engine.shapes import TODAY, one_of_each
from tests.faults.load import Load
from tests.faults.postgres import OwnPostgres, postgres_programs
from tests.faults.processes import PATIENCE_S, Nginx, OwnRedis, Process, Replica, once, program

PATHS = tuple(
    f"/quote?model=llama-3-70b&gpu=h100&ctx={ctx}&slo={slo}&as_of={TODAY}"
    for ctx in range(1024, 8193, 512)
    for slo in ("interactive", "batch")
)


SETTINGS = {
    "trusted_proxies": "127.0.0.1",
    # Leases are short, so that Redis is asked often; nobody is ever refused.
    "rate_burst": "1000",
    "rate_per_s": "1000000",
    "database_pool": "2",
    "database_timeout_s": "2",
    "poll_s": "0.2",
    "log_level": "warning",
}


@dataclass(slots=True)
class Fleet:
    """The processes, the catalogs that the database held by revision, and right answers by path and revision."""

    replicas: list[Replica]
    nginx: Nginx
    redis: OwnRedis
    postgres: OwnPostgres
    engine: Engine
    key: str
    catalogs: dict[int, Catalog]
    known: dict[tuple[str, int], Any]

    def expected(self, path: str, revision: int) -> tuple[Any, ...]:
        """The right answer, computed here."""
        if (path, revision) not in self.known:
            asked = parse_request(from_query(path.partition("?")[2]))
            self.known[path, revision] = make_quote(self.catalogs[revision], asked, TODAY)
        return (self.known[path, revision],)

    def load(self) -> Load:
        """Callers of this fleet."""
        return Load(self.nginx.address, self.key, PATHS, self.expected)

    def publish(self, usd_per_hour: str) -> int:
        """A new revision, in which every offer costs this; the number of it."""
        newest = self.catalogs[max(self.catalogs)].content
        content = replace(newest, offers=tuple(at_price(one, usd_per_hour) for one in newest.offers))
        # Before it is stored: a replica may answer from it at once.
        revision = max(self.catalogs) + 1
        self.catalogs[revision] = Catalog(content, revision)
        assert CatalogRepository(self.engine).store(content, author="tests", note="").revision == revision
        return revision

    def all_say(self, **said: object) -> bool:
        """Whether every replica is ready and says so in /readyz."""
        answers = [one.ready() for one in self.replicas]
        return all(one is not None and said.items() <= one.items() for one in answers)

    def end_connections(self) -> None:
        """End every connection that the replicas have to the database."""
        self.postgres.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'costsvc'"
        )


def at_price(offer: Offer, usd_per_hour: str) -> Offer:
    """The offer at another price, on every day."""
    price = Decimal(usd_per_hour)
    return replace(offer, prices=tuple(replace(one, usd_per_gpu_hour=price) for one in offer.prices))


@contextmanager
def running(*processes: Process, within_s: float = PATIENCE_S) -> Iterator[None]:
    """Start processes together, and end them."""
    with ExitStack() as started:
        for process in processes:
            started.enter_context(process)
        for each in processes:
            once(each.is_answering, f"{each.log.stem} answers", within_s)
        yield


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnPostgres]:
    """A running PostgreSQL with an empty database for the service, on a machine that has all a fleet needs."""
    for name in ("nginx", "redis-server"):
        if program(name) is None:
            pytest.skip(f"{name} is not on this machine (apt install nginx-light redis-server)")
    if postgres_programs() is None:
        pytest.skip("PostgreSQL's programs are not on this machine (apt install postgresql)")
    with OwnPostgres(tmp_path_factory.mktemp("postgres") / "postgres.log") as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where processes print."""
    return tmp_path_factory.mktemp("fleet")


@pytest.fixture(scope="module")
def fleet(postgres: OwnPostgres, folder: Path) -> Iterator[Fleet]:
    """A running fleet, whose catalog is one model on one card."""
    engine = make_engine(postgres.url)
    upgrade(engine)
    content = one_of_each()
    CatalogRepository(engine).store(content, author="tests", note="")
    key, _ = KeyRepository(engine).create(scope="quote", label="tests", owner="finance", author="tests")
    redis = OwnRedis(folder)
    settings = {**SETTINGS, "database_url": postgres.url, "redis_url": redis.url}
    replicas = [Replica(folder, f"replica-{number}", settings) for number in (1, 2, 3)]
    nginx = Nginx(folder, [one.port for one in replicas])
    with running(redis, *replicas, nginx):
        yield Fleet(replicas, nginx, redis, postgres, engine, key, {1: Catalog(content, 1)}, {})
    engine.dispose()
