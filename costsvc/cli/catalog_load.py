"""The catalog files into the database."""

from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final

import click

from costsvc.cli.environment import DIRECTORY, environment
from costsvc.cli.stored import repository
from costsvc.ingest.fingerprint import files_fingerprint
from costsvc.ingest.root import catalog_root
from costsvc.quoting.words import counted

if TYPE_CHECKING:
    from costsvc.db.repository import StoreResult

# By name: what reads the files is half of what a command imports, and nothing needs it where they are known.
_READ: Final = "costsvc.ingest.files:read_catalog"
_PUBLISH: Final = "costsvc.quoting.publishing:publish_files"


@click.command
@DIRECTORY
@click.option("--note", default="costsvc catalog load", show_default=True, help="Why, for the record.")
def load(directory: Path | None, note: str) -> None:
    """Make the files the newest revision, beside prices that were posted; nothing happens where they are."""
    settings = environment()
    root = catalog_root(directory or settings.catalog_dir)
    store, fingerprint = repository(settings), files_fingerprint(root)
    if store.files_fingerprint() == fingerprint:
        click.echo(f"Revision {store.newest_revision()}: 0 rows added, 0 changed, 0 retired.", err=True)
        return
    read, publish = resolve_name(_READ), resolve_name(_PUBLISH)
    stored: StoreResult = publish(
        store, read(root), author="command line", note=note, fingerprint=fingerprint
    )
    click.echo(
        f"Revision {stored.revision}: {counted(stored.added, 'row')} added, {stored.changed} changed, "
        f"{stored.retired} retired.",
        err=True,
    )
