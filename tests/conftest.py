"""Databases for tests: the same tests run on a SQLite file and on PostgreSQL.

PostgreSQL is the one at COSTSVC_TEST_POSTGRES_URL, or on the standard port of this machine. Each session
makes databases of its own there and drops them.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from costsvc.db.engine import make_engine
from costsvc.db.migrate import upgrade
from costsvc.db.repository import CatalogRepository
from costsvc.db.tables import RevisionRow

DEFAULT_POSTGRES_URL = "postgresql://postgres@127.0.0.1:5432/postgres"
LONGEST = {"spreadsheets", "browser", "test_referee.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest files first, so that no process is left alone with one of them at the end."""
    items.sort(key=lambda item: LONGEST.isdisjoint(item.path.parts))


@pytest.fixture(scope="session")
def new_postgres_database() -> Iterator[Callable[[], str]]:
    """Makes an empty database and answers its address."""
    server = make_url(os.environ.get("COSTSVC_TEST_POSTGRES_URL") or DEFAULT_POSTGRES_URL)
    admin = create_engine(
        server.set(drivername="postgresql+psycopg"),
        isolation_level="AUTOCOMMIT",
        connect_args={"connect_timeout": 3},
    )
    try:
        admin.connect().close()
    except OperationalError:
        pytest.skip(
            "No PostgreSQL answers at COSTSVC_TEST_POSTGRES_URL (default: the standard port of this machine)."
        )
    made: list[str] = []

    def make() -> str:
        name = f"costsvc_test_{uuid4().hex}"
        with admin.connect() as connection:
            connection.execute(text(f'CREATE DATABASE "{name}"'))
        made.append(name)
        return server.set(database=name).render_as_string(hide_password=False)

    try:
        yield make
    finally:
        with admin.connect() as connection:
            for name in made:
                connection.execute(text(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))
        admin.dispose()


@pytest.fixture(scope="session")
def bare_postgres(new_postgres_database: Callable[[], str]) -> str:
    """A database for `empty_database_url`, used by one test after another: to make one takes a second."""
    return new_postgres_database()


@pytest.fixture(scope="session")
def migrated_postgres(new_postgres_database: Callable[[], str]) -> str:
    """A database for `database_url`, used by one test after another."""
    return _migrated(new_postgres_database())


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the newest schema and no rows, to be copied."""
    path = tmp_path_factory.mktemp("migrated") / "costsvc.db"
    _migrated(f"sqlite:///{path}")
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables, on each kind of database in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    url: str = request.getfixturevalue("bare_postgres")
    _execute(url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with the newest schema and no rows, on each kind of database in turn."""
    if request.param == "sqlite":
        path = tmp_path / "costsvc.db"
        shutil.copy(request.getfixturevalue("migrated_sqlite"), path)
        return f"sqlite:///{path}"
    url: str = request.getfixturevalue("migrated_postgres")
    _execute(url, f"TRUNCATE {', '.join(RevisionRow.metadata.tables)} RESTART IDENTITY")
    return url


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """Connections to `database_url`."""
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def repository(engine: Engine) -> CatalogRepository:
    """Catalogs in `database_url`."""
    return CatalogRepository(engine)


def _migrated(url: str) -> str:
    engine = make_engine(url)
    upgrade(engine)
    # Closing the last connection folds SQLite's log into the file: the file alone is the database.
    engine.dispose()
    return url


def _execute(url: str, statements: str) -> None:
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statements))
    engine.dispose()
