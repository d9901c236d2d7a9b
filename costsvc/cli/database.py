"""Commands that prepare, copy and restore the database."""

from pathlib import Path

import click
from sqlalchemy import Engine

from costsvc.cli.environment import environment
from costsvc.db.backup import back_up, restore
from costsvc.db.engine import make_engine
from costsvc.db.migrate import upgrade
from costsvc.db.schema import newest_schema

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(name="db")
def database() -> None:
    """Prepare, copy and restore the database that COSTSVC_DATABASE_URL names."""


@database.command(name="upgrade")
def upgrade_database() -> None:
    """Apply the missing migrations; safe to run from several machines at once."""
    upgrade(_engine())
    click.echo(f"The database has schema {newest_schema()}.", err=True)


@database.command(name="backup")
@click.argument("file", type=_FILE)
def back_up_database(file: Path) -> None:
    """Copy the whole database into FILE, also while the service runs."""
    back_up(_engine(), file)
    click.echo(f"{file} holds the database: {file.stat().st_size:,} bytes.", err=True)


@database.command(name="restore")
@click.argument("file", type=_FILE)
def restore_database(file: Path) -> None:
    """Put a copy back into an empty database, and bring it to the newest schema."""
    engine = _engine()
    restore(engine, file)
    upgrade(engine)
    click.echo(f"The database holds what {file} held, with schema {newest_schema()}.", err=True)


def _engine() -> Engine:
    settings = environment()
    return make_engine(settings.database_url.get_secret_value(), timeout_s=settings.database_timeout_s)
