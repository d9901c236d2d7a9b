"""Which schema a database has and which one this code needs, without what migrates from one to the other."""

from pathlib import Path

from sqlalchemy import Engine, inspect, text

import costsvc
from costsvc.db.engine import reading

_TABLE = "alembic_version"


def scripts() -> Path:
    """The folder of migrations: beside the code in an installed copy, at the top of a checkout."""
    package = Path(costsvc.__file__).parent
    installed = package / "_migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def newest_schema() -> str:
    """The schema that this version of the code needs: the number after the day in the last migration's name."""
    return max(path.stem for path in (scripts() / "versions").glob("*.py")).split("_")[3]


def schema_of(engine: Engine) -> str | None:
    """The schema that a database has; None before the first migration.

    Raises
    ------
    Unavailable
        The database does not answer.
    """
    with reading(engine) as connection:
        if not inspect(connection).has_table(_TABLE):
            return None
        found: str | None = connection.scalar(text(f"SELECT version_num FROM {_TABLE}"))  # noqa: S608 - a name of ours
        return found
