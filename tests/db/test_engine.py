"""Addresses of databases, and what an operator is told when one does not answer."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from costsvc.db.engine import make_engine, reading
from costsvc.db.migrate import upgrade
from costsvc.db.repository import CatalogRepository
from costsvc.errors import InvalidRequest, Unavailable


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@host/name",
        "postgres://u:p@host/name",
        "postgresql+asyncpg://u:p@host/name",
        "postgresql+psycopg2://u:p@host/name",
    ],
)
def test_postgresql_is_spoken_to_through_psycopg_whatever_driver_is_named(url: str) -> None:
    engine = make_engine(url)
    assert engine.url.render_as_string(hide_password=False) == "postgresql+psycopg://u:p@host/name"
    assert engine.driver == "psycopg"


@pytest.mark.parametrize("url", ["mysql://root:hunter2@host/name", "hunter2", ""])
def test_another_kind_of_address_is_refused_without_repeating_its_password(url: str) -> None:
    with pytest.raises(InvalidRequest, match="COSTSVC_DATABASE_URL") as refusal:
        make_engine(url)
    assert "hunter2" not in str(refusal.value)


def test_a_server_that_does_not_answer_is_unavailable() -> None:
    engine = make_engine("postgresql://nobody@127.0.0.1:1/none", timeout_s=2)
    with pytest.raises(Unavailable, match="Check that it runs"):
        CatalogRepository(engine).newest_revision()


def test_a_folder_that_does_not_exist_is_unavailable(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path / 'nowhere' / 'costsvc.db'}")
    with pytest.raises(Unavailable), reading(engine):
        pass


def test_a_commit_on_sqlite_survives_power_loss_and_readers_never_block(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path / 'costsvc.db'}")
    upgrade(engine)
    with engine.connect() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    engine.dispose()
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 10_000}


def test_a_commit_on_postgresql_survives_power_loss_though_the_server_would_not_wait(
    new_postgres_database: Callable[[], str],
) -> None:
    url = new_postgres_database()
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.execute(text(f'ALTER DATABASE "{engine.url.database}" SET synchronous_commit = off'))
    engine.dispose()
    with engine.connect() as connection:
        said = connection.scalar(text("SHOW synchronous_commit"))
    engine.dispose()
    assert said == "on"
