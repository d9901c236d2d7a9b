"""Keys: made here, shown once, and ended here."""

from datetime import UTC, datetime

import click

from costsvc.cli.environment import environment
from costsvc.db.engine import make_engine
from costsvc.db.keys import SCOPES, KeyRepository, Scope

_AUTHOR = "command line"


@click.group
def keys() -> None:
    """Create, list and revoke keys in the database that COSTSVC_DATABASE_URL names."""


@keys.command
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    default="read",
    show_default=True,
    help="What it may do; each includes what those before it may.",
)
@click.option("--label", required=True, help="What it is for.")
@click.option("--owner", default="", help="Whose it is.")
@click.option(
    "--expires", type=click.DateTime(["%Y-%m-%d"]), help="First day, in UTC, on which it opens nothing more."
)
def create(scope: Scope, label: str, owner: str, expires: datetime | None) -> None:
    """Make a key and print it, this once: only its hash is kept."""
    expires_at = None if expires is None else expires.replace(tzinfo=UTC)
    if expires_at is not None and expires_at <= datetime.now(UTC):
        raise click.BadParameter(f"{expires:%Y-%m-%d} is no day to come.", param_hint="--expires")
    secret, key = _repository().create(
        scope=scope, label=label, owner=owner, author=_AUTHOR, expires_at=expires_at
    )
    click.echo(secret)
    click.echo(f"Key {key.id} ({scope}). It cannot be shown again.", err=True)


@keys.command(name="list")
def list_keys() -> None:
    """Every key ever made, without secrets."""
    click.echo("id\tscope\tlabel\towner\tcreated\texpires\trevoked")
    for key in _repository().listed():
        days = (key.created_at, key.expires_at, key.revoked_at)
        shown = [key.id, key.scope, key.label, key.owner, *(f"{day:%Y-%m-%d}" if day else "" for day in days)]
        click.echo("\t".join(shown))


@keys.command
@click.argument("id")
def revoke(id: str) -> None:
    """End a key: within two seconds it opens nothing in any process."""
    _repository().revoke(id, author=_AUTHOR)
    click.echo(f"Key {id} is revoked.", err=True)


def _repository() -> KeyRepository:
    settings = environment()
    return KeyRepository(
        make_engine(settings.database_url.get_secret_value(), timeout_s=settings.database_timeout_s)
    )
