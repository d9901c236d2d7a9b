"""A running service over the shipped catalog, on a day of its own."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from costsvc.app import create_app
from costsvc.cli.serve import prepare
from costsvc.db.engine import make_engine
from costsvc.db.keys import KeyRepository
from costsvc.db.migrate import upgrade
from costsvc.db.repository import CatalogRepository
from costsvc.quoting.publishing import publish_files
from costsvc.settings import Settings
from tests.engine.shapes import TODAY, one_of_each

__all__ = ["TODAY"]

Client = TestClient[Litestar]
MakeKey = Callable[[Path, Any], str]


@pytest.fixture(scope="session")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that holds the shipped catalog. Nothing is written to it but keys."""
    path = tmp_path_factory.mktemp("api") / "costsvc.db"
    prepare(settings_for(path))
    return path


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that holds one model and one card. Never written to."""
    path = tmp_path_factory.mktemp("small") / "costsvc.db"
    engine = make_engine(f"sqlite:///{path}")
    upgrade(engine)
    publish_files(CatalogRepository(engine), one_of_each(), author="tests", note="")
    engine.dispose()
    return path


@pytest.fixture(scope="session")
def app(loaded: Path) -> Litestar:
    """The service over `loaded`."""
    return create_app(settings_for(loaded), today=lambda: TODAY)


@pytest.fixture(scope="session")
def client(app: Litestar) -> Iterator[Client]:
    """Calls to the service; its own faults arrive as responses."""
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def key(loaded: Path) -> str:
    """A read key of `loaded`."""
    engine = make_engine(f"sqlite:///{loaded}")
    secret, _ = KeyRepository(engine).create(scope="read", label="tests", owner="", author="tests")
    engine.dispose()
    return secret


@pytest.fixture(scope="session")
def make_key() -> MakeKey:
    """Makes a key of a scope in a database."""

    def make(path: Path, scope: Any) -> str:
        engine = make_engine(f"sqlite:///{path}")
        secret, _ = KeyRepository(engine).create(scope=scope, label="tests", owner="", author="tests")
        engine.dispose()
        return secret

    return make


@pytest.fixture
def database(small: Path, tmp_path: Path) -> Path:
    """A copy of `small` of a test's own."""
    path = tmp_path / "costsvc.db"
    shutil.copy(small, path)
    return path


@pytest.fixture
def writable(database: Path) -> Iterator[Client]:
    """A service over `database`."""
    with TestClient(create_app(settings_for(database), today=lambda: TODAY)) as client:
        yield client


@pytest.fixture
def admin(database: Path, make_key: MakeKey) -> dict[str, str]:
    """Headers of an admin of `database`."""
    return {"X-API-Key": make_key(database, "admin")}


def settings_for(path: Path) -> Settings:
    """Settings of a service over a SQLite file."""
    return Settings.model_validate({"database_url": f"sqlite:///{path}", "poll_s": 3600, "rate_per_s": 0})
