"""Reading the catalog files without a database."""

from pathlib import Path

import click

from costsvc.cli.environment import DIRECTORY, environment
from costsvc.ingest.files import catalog_root, read_catalog


@click.command
@DIRECTORY
def check(directory: Path | None) -> None:
    """Read every catalog file; a bad one is refused by file, line and field."""
    root = catalog_root(directory or environment().catalog_dir)
    content = read_catalog(root)
    facts = [
        *(fact for model in content.models for fact in model.fact_sources),
        *(fact for gpu in content.gpus for fact in gpu.fact_sources),
        *(fact for profile in content.profiles for fact in profile.fact_sources),
    ]
    click.echo(
        f"{root}: {len(content.models)} models, {len(content.gpus)} GPUs, {len(content.offers)} offers, "
        f"{len(content.api_prices)} published prices, {len(content.judgements)} judgements; "
        f"{len(facts)} facts, each with one of {len(content.sources)} sources: all valid."
    )
