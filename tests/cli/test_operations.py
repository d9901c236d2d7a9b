"""Commands for operators: the catalog, the database, keys and the service itself."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result
from pydantic import SecretStr

from costsvc.cli import main, serve
from costsvc.db.entries import CatalogContent
from costsvc.errors import InvalidCatalogFile
from costsvc.ingest.files import read_catalog
from costsvc.ingest.root import catalog_root
from costsvc.settings import Settings
from tests.cli.conftest import Run

PATIENCE_S = 90


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database that the environment names, with the newest schema."""
    path = tmp_path / "costsvc.db"
    monkeypatch.setenv("COSTSVC_DATABASE_URL", f"sqlite:///{path}")
    called("db", "upgrade")
    return path


def called(*arguments: str) -> Result:
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    return done


def test_the_shipped_catalog_is_valid() -> None:
    assert "all valid" in called("catalog", "check").stdout


def test_a_bad_file_is_refused_by_file_line_and_field(tmp_path: Path) -> None:
    copy = tmp_path / "catalog"
    shutil.copytree(catalog_root(None), copy)
    path = copy / "gpus" / "h100-sxm.yaml"
    lines = path.read_text(encoding="utf-8").splitlines()
    number = next(n for n, line in enumerate(lines, 1) if line.startswith("name:"))
    lines[number - 1] = "name: 5"
    path.write_text("\n".join(lines), encoding="utf-8")
    done = CliRunner().invoke(main, ["catalog", "check", "--dir", str(copy)])
    assert done.exit_code == 1
    assert f"gpus/h100-sxm.yaml:{number}: field 'name'" in done.stderr


def test_the_files_become_a_revision_once(database: Path) -> None:
    assert "Revision 1: " in called("catalog", "load").stderr
    assert "Revision 1: 0 rows added, 0 changed, 0 retired" in called("catalog", "load").stderr


def test_loading_everything_takes_seconds_and_again_next_to_nothing(database: Path) -> None:
    """In time of the processor, start included, so that what else the machine does is not measured."""

    def load_s() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", "from costsvc.cli import main; main()", "catalog", "load"], check=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert load_s() < 10
    assert load_s() < 2


def test_a_quote_names_the_revision_of_the_database_it_is_from(database: Path) -> None:
    called("catalog", "load")
    answer = json.loads(called("quote", "llama-3-70b", "h100", "--ctx", "8192", "--format", "json").stdout)
    assert answer["catalog_revision"] == 1


def test_a_database_without_tables_says_what_to_run(run: Run) -> None:
    done = run("keys", "list")
    assert done.exit_code == 1
    assert "costsvc db upgrade" in done.stderr


def test_a_key_is_shown_once_and_listed_without_its_secret(database: Path) -> None:
    made = called("keys", "create", "--scope", "admin", "--label", "price feed")
    secret = made.stdout.strip()
    assert secret.startswith("costsvc_")
    listed = called("keys", "list").stdout
    assert "admin\tprice feed" in listed
    assert secret.rpartition("_")[2] not in listed
    assert secret.encode() not in database.read_bytes()


def test_a_revoked_key_is_listed_with_its_day(database: Path) -> None:
    id = called("keys", "create", "--label", "old").stdout.split("_")[1]
    called("keys", "revoke", id)
    (line,) = (line for line in called("keys", "list").stdout.splitlines() if line.startswith(id))
    assert line.split("\t")[-1]


def test_revoking_an_unknown_key_fails(database: Path) -> None:
    done = CliRunner().invoke(main, ["keys", "revoke", "nobody"])
    assert (done.exit_code, "No API key 'nobody'" in done.stderr) == (1, True)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Any]:
    """`costsvc serve` in an empty folder, on a free port; gives its address and its log."""
    bare = {name: text for name, text in os.environ.items() if not name.startswith("COSTSVC_")}
    log = tmp_path / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", "from costsvc.cli import main; main()", "serve", "--port", "0"],
            cwd=tmp_path,
            env=bare,
            stdout=output,
            stderr=output,
        )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while "running on" not in log.read_text() and time.monotonic() < deadline:
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        yield log.read_text().partition("running on ")[2].split()[0], log
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)


def test_the_service_starts_in_an_empty_folder_and_logs_no_key(served: Any) -> None:
    address, log = served
    quote = f"{address}/quote?model=llama-3-70b&gpu=h100&ctx=8192"
    assert httpx.get(quote).json()["catalog_revision"] == 1
    assert httpx.get(f"{quote}&api_key=hidden").status_code == 401
    assert "hidden" not in log.read_text()


def test_a_start_reads_the_files_again_only_where_they_changed(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "catalog"
    shutil.copytree(catalog_root(None), folder)
    settings = Settings(database_url=SecretStr(f"sqlite:///{database}"), catalog_dir=folder)
    read: list[Path] = []

    def counted(root: Path) -> CatalogContent:
        read.append(root)
        return read_catalog(root)

    monkeypatch.setattr("costsvc.ingest.files.read_catalog", counted)
    serve.prepare(settings)
    serve.prepare(settings)
    assert read == [folder]
    (folder / "models" / "llama-3-70b.yaml").unlink()
    with pytest.raises(InvalidCatalogFile):
        serve.prepare(settings)
    with pytest.raises(InvalidCatalogFile):
        serve.prepare(settings)
    assert read == [folder] * 3
