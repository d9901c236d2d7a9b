"""What commands learn from the environment, and the folder of catalog files that they may be given instead."""

from pathlib import Path

import click
from pydantic import ValidationError

from costsvc.ingest.faults import invalid_request
from costsvc.settings import Settings

DIRECTORY = click.option(
    "--dir",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of catalog files; absent: COSTSVC_CATALOG_DIR, else the shipped one.",
)


def environment() -> Settings:
    """What the environment sets."""
    try:
        return Settings()
    except ValidationError as error:
        raise invalid_request(error, Settings) from error
