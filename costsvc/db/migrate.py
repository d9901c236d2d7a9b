"""Brings a database to a version of the schema, one process at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, text

from costsvc.db.engine import SQLITE, connect_to_write
from costsvc.db.schema import scripts

NEWEST = "head"
EMPTY = "base"

# Any number will do, as long as every version of costsvc uses the same one.
_LOCK = 0x636F_7374
# Another migrator may take its time; a table that somebody else holds may not keep everybody waiting.
_WAIT = "SET LOCAL statement_timeout = '10min'; SET LOCAL lock_timeout = '10min'"
_WORK = "SET LOCAL lock_timeout = '30s'"


def upgrade(engine: Engine, to: str = NEWEST) -> None:
    """Apply the missing migrations; all of them, or none where one fails."""
    _migrate(engine, lambda config: command.upgrade(config, to))


def downgrade(engine: Engine, to: str) -> None:
    """Undo migrations down to a revision of the schema, or to `base`. What their tables hold is lost."""
    _migrate(engine, lambda config: command.downgrade(config, to))


def _migrate(engine: Engine, step: Callable[[Config], None]) -> None:
    config = _config()
    with _migrating(engine) as connection:
        config.attributes["connection"] = connection
        step(config)


def _config() -> Config:
    config = Config()
    # The value is a template, in which a per cent sign stands doubled.
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


@contextmanager
def _migrating(engine: Engine) -> Iterator[Connection]:
    """One locked transaction: a second migrator waits, and then finds nothing left to do."""
    locked = _locked_sqlite if engine.dialect.name == SQLITE else _locked_postgresql
    with connect_to_write(engine) as connection, locked(connection):
        yield connection


@contextmanager
def _locked_postgresql(connection: Connection) -> Iterator[None]:
    with connection.begin():
        connection.execute(text(_WAIT))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        connection.execute(text(_WORK))
        yield


@contextmanager
def _locked_sqlite(connection: Connection) -> Iterator[None]:
    """The write lock of the file is the lock; it is held from the first statement.

    A table is changed by copying and dropping it, which enforced references would forbid, so they are
    checked at the end instead. The switch has no effect inside a transaction.
    """
    driver: Any = connection.connection.driver_connection
    driver.execute("PRAGMA foreign_keys = OFF")
    try:
        with connection.begin():
            yield
            broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
            if broken:
                raise RuntimeError(f"The migration leaves {len(broken)} rows that refer to nothing.")
    finally:
        driver.execute("PRAGMA foreign_keys = ON")
