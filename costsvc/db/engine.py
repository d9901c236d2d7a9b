"""Connections to SQLite or PostgreSQL, with the safety settings each needs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from costsvc.errors import InvalidRequest, Unavailable

POSTGRESQL = "postgresql"
SQLITE = "sqlite"
_DRIVERS = {POSTGRESQL: "postgresql+psycopg", "postgres": "postgresql+psycopg", SQLITE: "sqlite"}
_WRITES = "costsvc_writes"
# Storing a whole catalog takes seconds; a statement that takes a minute is lost and must let go of its locks.
_LONGEST_STATEMENT_S = 60
_RECYCLE_S = 1800


def make_engine(database_url: str, *, pool_size: int = 5, timeout_s: float = 10.0) -> Engine:
    """An engine for `sqlite:///path` or `postgresql://…`.

    Parameters
    ----------
    pool_size : int
        Connections kept to PostgreSQL; as many again may be opened under load.
    timeout_s : float
        Longest wait for a connection, a lock or another writer. [s]

    Raises
    ------
    InvalidRequest
        The address is of another kind of database, or no address.
    """
    url = _checked(database_url)
    if url.get_backend_name() == SQLITE:
        engine = create_engine(url, connect_args={"timeout": timeout_s})
        _listen_to_sqlite(engine)
        return engine
    session = {
        "statement_timeout": _LONGEST_STATEMENT_S * 1000,
        "lock_timeout": int(timeout_s * 1000),
        # Whatever the server's own setting: what was acknowledged survives power loss, as with SQLite.
        "synchronous_commit": "on",
    }
    return create_engine(
        url,
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_timeout=timeout_s,
        pool_recycle=_RECYCLE_S,
        # Finds out that the server restarted before a query does.
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": max(2, int(timeout_s)),
            "application_name": "costsvc",
            "options": " ".join(f"-c {name}={value}" for name, value in session.items()),
        },
    )


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection to read with; whatever keeps the database from answering becomes `Unavailable`."""
    with _reached(), engine.connect() as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """One transaction to write in: all of it is kept, or nothing."""
    with _reached(), connect_to_write(engine) as connection, connection.begin():
        yield connection


def connect_to_write(engine: Engine) -> Connection:
    """A connection whose transactions take SQLite's write lock at once.

    One that read first and writes later fails where another wrote in between, however long it would wait.
    """
    with _reached():
        return engine.connect().execution_options(**{_WRITES: True})


def _checked(database_url: str) -> URL:
    try:
        url = make_url(database_url)
        return url.set(drivername=_DRIVERS[url.get_backend_name()])
    except (ArgumentError, KeyError):
        # The text itself may hold a password, so it is not repeated.
        raise InvalidRequest(
            "The database address is neither sqlite:///path nor postgresql://user@host/name."
            " Set COSTSVC_DATABASE_URL to one of these.",
            field="database_url",
        ) from None


@contextmanager
def _reached() -> Iterator[None]:
    try:
        yield
    except (OperationalError, InterfaceError, ProgrammingError, PoolTimeout) as error:
        advice = (
            "It lacks tables that this version needs: run `costsvc db upgrade`."
            if _lacks_a_table(error)
            else "Check that it runs and that COSTSVC_DATABASE_URL leads to it."
        )
        raise Unavailable(f"The catalog's database does not answer. {advice}") from error


def _lacks_a_table(error: Exception) -> bool:
    if not isinstance(error, DBAPIError):
        return False
    undefined_table = "42P01"
    return getattr(error.orig, "sqlstate", None) == undefined_table or "no such table" in str(error.orig)


def _listen_to_sqlite(engine: Engine) -> None:
    """Readers never wait for the writer, a commit survives power loss, and references are enforced."""

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: object) -> None:
        # The driver's own habit is to open a transaction at the first write, and none around DDL.
        connection.isolation_level = None
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {setting}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
