"""Reading the catalog files without a database."""

from pathlib import Path

import click

from costsvc.cli.catalogs import environment
from costsvc.ingest.files import catalog_root, read_catalog

DIRECTORY = click.option(
    "--dir",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of catalog files; absent: COSTSVC_CATALOG_DIR, else the shipped one.",
)


@click.command
@DIRECTORY
def check(directory: Path | None) -> None:
    """Read every catalog file; a bad one is refused by file, line and field."""
    root = catalog_root(directory or environment().catalog_dir)
    content = read_catalog(root)
    click.echo(
        f"{root}: {len(content.models)} models, {len(content.gpus)} GPUs, {len(content.offers)} offers, "
        f"{len(content.api_prices)} published prices, {len(content.judgements)} judgements: all valid."
    )
