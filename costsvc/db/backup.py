"""Copies of a whole database in one file, taken while the service runs, and put back into an empty one."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, inspect

from costsvc.db.engine import SQLITE, reading
from costsvc.errors import InvalidRequest, Unavailable

_UNFINISHED: Final = ".unfinished"


def back_up(engine: Engine, to: Path) -> None:
    """Copy the database as it is at one moment; a file that is there already is never written over.

    Raises
    ------
    InvalidRequest
        `to` is there, or cannot be written.
    Unavailable
        The database does not answer, or `pg_dump` is missing or fails.
    """
    if to.exists():
        raise InvalidRequest(f"{to} is there already. Name a new file, or move this one away.", field="file")
    with reading(engine) as connection:
        if not inspect(connection).get_table_names():
            raise Unavailable("The database holds no tables, so there is nothing to keep.")
    # Under another name until it is whole: what has the name of a backup is one.
    unfinished = to.with_name(f"{to.name}{_UNFINISHED}")
    try:
        if engine.dialect.name == SQLITE:
            _copy_sqlite(engine, unfinished)
        else:
            _run(engine, "pg_dump", ["--format=custom", f"--file={unfinished}"])
        unfinished.replace(to)
    except (OSError, sqlite3.Error) as error:
        raise InvalidRequest(f"{to} cannot be written: {error}.", field="file") from error
    finally:
        unfinished.unlink(missing_ok=True)


def restore(engine: Engine, backup: Path) -> None:
    """Put a copy back, whole or not at all.

    Raises
    ------
    InvalidRequest
        The database holds tables already, or `backup` is no copy of such a database.
    Unavailable
        The database does not answer, or `pg_restore` is missing or fails.
    """
    if not backup.is_file():
        raise InvalidRequest(f"There is no file {backup}.", field="file")
    with reading(engine) as connection:
        if inspect(connection).get_table_names():
            raise InvalidRequest(
                "The database holds tables already, and restoring never writes over them. Name an empty one "
                "in COSTSVC_DATABASE_URL.",
                field="database_url",
            )
    if engine.dialect.name == SQLITE:
        _put_back_sqlite(engine, backup)
    else:
        _run(engine, "pg_restore", ["--exit-on-error", "--single-transaction", "--no-owner", str(backup)])


def _copy_sqlite(engine: Engine, to: Path) -> None:
    with reading(engine) as connection, closing(sqlite3.connect(to)) as copy:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)  # noqa: S101 - what the dialect of SQLite connects by
        driver.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        _check(copy)


def _put_back_sqlite(engine: Engine, backup: Path) -> None:
    try:
        with closing(sqlite3.connect(f"{backup.resolve().as_uri()}?mode=ro", uri=True)) as copy:
            _check(copy)
            if not copy.execute("SELECT 1 FROM sqlite_schema WHERE name = 'alembic_version'").fetchone():
                raise InvalidRequest(f"{backup} is a database, but none of this service.", field="file")
            with reading(engine) as connection:
                driver = connection.connection.driver_connection
                assert isinstance(driver, sqlite3.Connection)  # noqa: S101 - as above
                copy.backup(driver)
    except sqlite3.Error as error:
        raise InvalidRequest(f"{backup} is no copy of a SQLite database: {error}.", field="file") from error


def _check(copy: sqlite3.Connection) -> None:
    (said,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        raise sqlite3.DatabaseError(said)


def _run(engine: Engine, program: str, arguments: Sequence[str]) -> None:
    """PostgreSQL's own program. The password goes by the environment, which other users cannot see."""
    found = shutil.which(program)
    if found is None:
        raise Unavailable(
            f"{program} is not on this machine. It comes with PostgreSQL's client: `apt install postgresql-client`."
        )
    url = engine.url.set(drivername="postgresql")
    address = url._replace(password=None).render_as_string(hide_password=False)
    secret = {} if url.password is None else {"PGPASSWORD": str(url.password)}
    done = subprocess.run(  # noqa: S603 - the program is found above, and no shell reads its arguments
        [found, f"--dbname={address}", "--no-password", *arguments],
        env={**os.environ, **secret},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip().partition("\n")[0]
        raise Unavailable(f"{program} failed: {said}")
