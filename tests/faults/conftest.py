"""Three replicas, as `docker-compose.yml` starts them: on one PostgreSQL, with a Redis, behind nginx."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, make_url, text

from costsvc.db.engine import make_engine
from costsvc.db.entries import CatalogContent
from costsvc.db.keys import KeyRepository
from costsvc.db.migrate import upgrade
from costsvc.db.repository import CatalogRepository
from costsvc.db.snapshot import Catalog
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.quoting.given import from_query
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from tests.engine.shapes import TODAY
from tests.faults.load import Load
from tests.faults.processes import Nginx, OwnRedis, Replica, once, program

PATHS = tuple(
    f"/quote?model=llama-3-70b&gpu=h100&ctx={ctx}&slo={slo}&as_of={TODAY}"
    for ctx in range(1024, 8193, 512)
    for slo in ("interactive", "batch")
)


@dataclass(slots=True)
class Fleet:
    """The processes, the database behind them, and the catalogs it held by revision."""

    replicas: list[Replica]
    nginx: Nginx
    redis: OwnRedis
    engine: Engine
    admin: Engine
    key: str
    catalogs: dict[int, Catalog]
    known: dict[tuple[str, int], Any]

    def expected(self, path: str, revision: int) -> Any:
        """The right answer, computed here."""
        if (path, revision) not in self.known:
            asked = parse_request(from_query(path.partition("?")[2]))
            self.known[path, revision] = make_quote(self.catalogs[revision], asked, TODAY)
        return self.known[path, revision]

    def load(self) -> Load:
        """Callers of this fleet."""
        return Load(self.nginx.address, self.key, PATHS, self.expected)

    def publish(self, usd_per_hour: str) -> int:
        """A new revision, in which every offer costs this; the number of it."""
        newest = self.catalogs[max(self.catalogs)].content
        offers = tuple(
            replace(
                one,
                prices=tuple(replace(price, usd_per_gpu_hour=Decimal(usd_per_hour)) for price in one.prices),
            )
            for one in newest.offers
        )
        content = replace(newest, offers=offers)
        # Before it is stored: a replica may answer from it at once.
        revision = max(self.catalogs) + 1
        self.catalogs[revision] = Catalog(content, revision)
        assert CatalogRepository(self.engine).store(content, author="tests", note="").revision == revision
        return revision

    def all_say(self, **said: object) -> bool:
        """Whether every replica is ready and says so in /readyz."""
        answers = [one.ready() for one in self.replicas]
        return all(one is not None and said.items() <= one.items() for one in answers)

    @property
    def database(self) -> str:
        """Name of the database."""
        return str(self.engine.url.database)

    def as_admin(self, statement: str, **values: object) -> None:
        """Run a statement from outside the database."""
        with self.admin.connect() as connection:
            connection.execute(text(statement), values)

    def end_connections(self) -> None:
        """End every connection that the replicas have to the database, as a restart of the server does."""
        self.as_admin(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name", name=self.database
        )


@pytest.fixture(scope="session")
def few_entries() -> CatalogContent:
    """Of the shipped catalog one model and one card."""
    whole = read_catalog(catalog_root(None))
    return replace(
        whole,
        models=tuple(entry for entry in whole.models if entry.id == "llama-3-70b"),
        gpus=tuple(entry for entry in whole.gpus if entry.id == "h100-sxm"),
        offers=tuple(offer for offer in whole.offers if offer.gpu_id == "h100-sxm"),
        api_prices=(),
    )


@pytest.fixture(scope="module")
def fleet(
    new_postgres_database: Callable[[], str],
    few_entries: CatalogContent,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Fleet]:
    """A running fleet."""
    for name in ("nginx", "redis-server"):
        if program(name) is None:
            pytest.skip(f"{name} is not on this machine (apt install nginx-light redis-server)")
    folder = tmp_path_factory.mktemp("fleet")
    url = new_postgres_database()
    engine = make_engine(url)
    upgrade(engine)
    CatalogRepository(engine).store(few_entries, author="tests", note="")
    key, _ = KeyRepository(engine).create(scope="quote", label="tests", owner="finance", author="tests")
    admin = create_engine(
        make_url(url).set(drivername="postgresql+psycopg", database="postgres"), isolation_level="AUTOCOMMIT"
    )
    redis = OwnRedis(folder)
    settings = {
        "database_url": url,
        "redis_url": redis.url,
        "trusted_proxies": "127.0.0.1",
        # Leases are short, so that Redis is asked often; nobody is ever refused.
        "rate_burst": "1000",
        "rate_per_s": "1000000",
        "database_pool": "2",
        "database_timeout_s": "2",
        "poll_s": "0.2",
        "log_level": os.environ.get("COSTSVC_TEST_LOG_LEVEL", "warning"),
    }
    replicas = [Replica(folder, f"replica-{number}", **settings) for number in (1, 2, 3)]
    nginx = Nginx(folder, [one.port for one in replicas])
    with ExitStack() as running:
        running.callback(engine.dispose)
        running.callback(admin.dispose)
        for process in (redis, *replicas, nginx):
            running.enter_context(process)
        for each in (redis, *replicas, nginx):
            once(each.is_answering, f"{each.log.stem} answers")
        yield Fleet(replicas, nginx, redis, engine, admin, key, {1: Catalog(few_entries, 1)}, {})
