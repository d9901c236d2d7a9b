"""A service where owners keep prices of their own."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from litestar.testing import TestClient

from costsvc.app import create_app
from tests.api.conftest import TODAY, Client, settings_for
from tests.api.negotiated.examples import Headers, key


@pytest.fixture(scope="module")
def database(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of the file's own: what its owners negotiate, no other test sees."""
    path = tmp_path_factory.mktemp("negotiated") / "costsvc.db"
    shutil.copy(small, path)
    return path


@pytest.fixture(scope="module")
def client(database: Path) -> Iterator[Client]:
    with TestClient(create_app(settings_for(database), today=lambda: TODAY)) as client:
        yield client


@pytest.fixture
def owner() -> str:
    """An owner whom no other test knows: owners do not see each other, so tests may share a service."""
    return f"finance {uuid4().hex}"


@pytest.fixture
def buyer(database: Path, owner: str) -> Headers:
    return key(database, owner, "catalog-write")
