"""The catalog files into the database."""

from pathlib import Path

import click

from costsvc.cli.catalog_files import DIRECTORY
from costsvc.cli.catalogs import environment
from costsvc.cli.stored import repository
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.ingest.fingerprint import files_fingerprint
from costsvc.quoting.publishing import publish_files


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
    stored = publish_files(
        store, read_catalog(root), author="command line", note=note, fingerprint=fingerprint
    )
    click.echo(
        f"Revision {stored.revision}: {stored.added} rows added, {stored.changed} changed, "
        f"{stored.retired} retired.",
        err=True,
    )
