"""A replica that loses its database goes on quoting, and says so."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from litestar.testing import TestClient

from costsvc.app import create_app
from costsvc.settings import Settings
from tests.api.conftest import TODAY, Client

QUOTE = "/quote?model=llama-3-70b&gpu=h100&ctx=8192"
PATIENCE_S = 10


@pytest.fixture
def cut_off(loaded: Path, tmp_path: Path) -> Iterator[Client]:
    """A service whose database loses its tables while it runs."""
    path = tmp_path / "costsvc.db"
    shutil.copy(loaded, path)
    settings = Settings.model_validate({"database_url": f"sqlite:///{path}", "poll_s": 0.02})
    with TestClient(create_app(settings, today=lambda: TODAY)) as client:
        assert client.get("/readyz").json()["database_reachable"] is True
        path.write_bytes(b"")
        deadline = time.monotonic() + PATIENCE_S
        while client.get("/readyz").json()["database_reachable"] and time.monotonic() < deadline:
            time.sleep(0.02)
        yield client


def test_readiness_names_the_catalog_that_quotes_come_from(client: Client) -> None:
    shown = client.get("/readyz").json()
    revision = client.get(QUOTE).json()["catalog_revision"]
    assert shown == {
        "ready": True,
        "catalog_revision": revision,
        "database_reachable": True,
        "stale_seconds": 0.0,
        "limits": "per process",
        "redis_reachable": None,
    }


def test_a_service_without_its_database_stays_ready_and_says_for_how_long(cut_off: Client) -> None:
    shown = cut_off.get("/readyz").json()
    assert (shown["ready"], shown["database_reachable"]) == (True, False)
    time.sleep(0.2)
    assert cut_off.get("/readyz").json()["stale_seconds"] > shown["stale_seconds"]


def test_a_quote_from_a_catalog_that_may_be_behind_says_so(
    cut_off: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = cut_off.get(QUOTE)
    assert fresh.json()["warnings"] == []
    monkeypatch.setattr("costsvc.api.service._STALE_AFTER_S", 0.0)
    stale = cut_off.get(QUOTE)
    assert "database does not answer" in stale.json()["warnings"][-1]
    assert stale.headers["ETag"] != fresh.headers["ETag"]
    assert stale.json()["prices"] == fresh.json()["prices"]


def test_a_service_waits_for_no_library_that_it_does_not_use(loaded: Path, tmp_path: Path) -> None:
    # A database of its own: to copy one drops the locks that keep another process from clearing its journal.
    own = shutil.copy(loaded, tmp_path / "costsvc.db")
    program = (
        "import sys; from litestar.testing import TestClient; from costsvc.cli import serve\n"
        "serve.prepare(serve.environment())\n"
        "with TestClient(serve.service()) as client:\n"
        f"    client.get('{QUOTE}').raise_for_status()\n"
        "unused = {'alembic', 'matplotlib', 'numba.np.linalg', 'psycopg', 'redis', 'scipy.linalg', 'xlsxwriter'}\n"
        "print(sorted(unused & set(sys.modules)))"
    )
    environment = {**os.environ, "COSTSVC_DATABASE_URL": f"sqlite:///{own}"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
