"""Commands that prepare the database."""

import click

from costsvc.cli.catalogs import environment
from costsvc.db.engine import make_engine
from costsvc.db.migrate import newest_schema, upgrade


@click.group(name="db")
def database() -> None:
    """Prepare the database that COSTSVC_DATABASE_URL names."""


@database.command(name="upgrade")
def upgrade_database() -> None:
    """Apply the missing migrations; safe to run from several machines at once."""
    settings = environment()
    upgrade(make_engine(settings.database_url.get_secret_value(), timeout_s=settings.database_timeout_s))
    click.echo(f"The database has schema {newest_schema()}.", err=True)
