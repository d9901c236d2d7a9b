"""Migrations build exactly the tables of the code, both ways, and one process at a time."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import DBAPIError, IntegrityError

import costsvc
from costsvc.db import migrate, tables
from costsvc.db.engine import make_engine
from costsvc.db.migrate import downgrade, upgrade
from costsvc.db.repository import CatalogRepository
from costsvc.db.schema import newest_schema, schema_of, scripts
from tests.db.examples import CONTENT

CHECKOUT = Path(costsvc.__file__).parent.parent
MIGRATE = (
    "import sys; from costsvc.db import engine, migrate; migrate.upgrade(engine.make_engine(sys.argv[1]))"
)


@pytest.fixture
def empty(empty_database_url: str) -> Iterator[Engine]:
    engine = make_engine(empty_database_url)
    yield engine
    engine.dispose()


def test_migrations_build_exactly_the_tables_of_the_code(empty: Engine) -> None:
    assert schema_of(empty) is None
    upgrade(empty)
    assert schema_of(empty) == newest_schema()
    with empty.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.RevisionRow.metadata) == []
        assert MigrationContext.configure(connection).get_current_revision() == newest_schema()


def test_going_down_leaves_no_table_and_up_again_builds_all(empty: Engine) -> None:
    upgrade(empty)
    built = set(inspect(empty).get_table_names())
    downgrade(empty, migrate.EMPTY)
    assert inspect(empty).get_table_names() == ["alembic_version"]
    upgrade(empty)
    assert set(inspect(empty).get_table_names()) == built > {"model", "offer_price", "audit"}


def test_migrating_what_is_migrated_keeps_its_rows(empty: Engine) -> None:
    upgrade(empty)
    CatalogRepository(empty).store(CONTENT, author="me", note="first")
    upgrade(empty)
    assert CatalogRepository(empty).load() == CONTENT


def test_six_processes_may_migrate_at_once(empty: Engine, empty_database_url: str) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MIGRATE, empty_database_url], stderr=subprocess.PIPE, text=True
        )
        for _ in range(6)
    ]
    errors = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 6, errors
    with empty.connect() as connection:
        assert connection.scalars(text("SELECT version_num FROM alembic_version")).all() == [newest_schema()]


def test_a_failing_migration_leaves_nothing_behind(
    empty: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "100% broken"
    shutil.copytree(scripts(), broken, ignore=shutil.ignore_patterns("__pycache__"))
    (broken / "versions" / "broken.py").write_text(
        "from alembic import op\n"  # noqa: S608 - a migration that fails on purpose
        f"revision, down_revision = 'broken', '{newest_schema()}'\n"
        "def upgrade():\n"
        "    op.execute('CREATE TABLE half (id INTEGER)')\n"
        "    op.execute('INSERT INTO nowhere VALUES (1)')\n"
    )
    monkeypatch.setattr(migrate, "scripts", lambda: broken)
    with pytest.raises(DBAPIError, match="nowhere"):
        upgrade(empty)
    assert inspect(empty).get_table_names() == []


def test_references_are_enforced_again_after_a_migration(empty: Engine) -> None:
    upgrade(empty)
    provider = text(
        "INSERT INTO provider (row_id, name, sells_gpu_hours, sells_tokens, added_revision)"
        " VALUES (1, 'X', true, true, 99)"
    )
    with pytest.raises(IntegrityError), empty.begin() as connection:
        connection.execute(provider)


def test_every_migration_says_why_and_what_going_down_costs() -> None:
    versions = sorted((CHECKOUT / "migrations" / "versions").glob("*.py"))
    assert versions
    for version in versions:
        docstring = version.read_text().partition('"""')[2].partition('"""')[0]
        assert "\nWhy: " in docstring, version.name
        assert "\nDown: " in docstring, version.name


def test_an_installed_copy_brings_its_migrations(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    installed = tmp_path / "installed"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(installed)
    database = tmp_path / "costsvc.db"
    ran = subprocess.run(
        [sys.executable, "-c", MIGRATE + "; print(migrate.scripts())", f"sqlite:///{database}"],
        env={**os.environ, "PYTHONPATH": str(installed)},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert ran.stdout.strip() == str(installed / "costsvc" / "_migrations")
    engine = make_engine(f"sqlite:///{database}")
    assert inspect(engine).has_table("offer_price")
    engine.dispose()
