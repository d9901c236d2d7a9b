"""A model's configuration as a file of the catalog."""

import sys
from datetime import UTC, date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from costsvc.cli.environment import DIRECTORY, environment
from costsvc.db.snapshot import Catalog
from costsvc.engine.parameters import parameter_count
from costsvc.errors import InvalidRequest, UnknownParameter
from costsvc.ingest.entry import SourceFields
from costsvc.ingest.faults import invalid_request
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.ingest.hugging_face.files import LARGEST_BYTES, config_of, file_text, read_config
from costsvc.ingest.hugging_face.given import GivenFacts, ImportedConfig
from costsvc.ingest.hugging_face.importing import ImportedModel, import_config
from costsvc.quoting.importing import with_model

_GIVEN = tuple(name for name in GivenFacts.model_fields if name != "source")
_WHOLE_NUMBERS = ("max_context_tokens", "resident_parameters", "published_parameters")


@click.command("import-hf")
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--hf-id", metavar="ORG/NAME", help="Repository; names the entry and its source.")
@click.option("--id", help="Id of the entry; absent: from --hf-id.")
@click.option("--name", help="Name of the entry; absent: from --hf-id.")
@click.option("--family", help="Family of the entry; absent: the configuration's model_type.")
@click.option("--alias", "aliases", multiple=True, help="Another spelling of the id; may be repeated.")
@click.option("--built-like", metavar="MODEL_TYPE", help="A known type whose layers are built exactly alike.")
@click.option("--source", "source_title", metavar="TITLE", help="Where PATH was read; absent: from --hf-id.")
@click.option(
    "--given", multiple=True, metavar="FIELD=VALUE", help="A fact that PATH does not hold; may be repeated."
)
@click.option("--given-source", metavar="TITLE", help="Where the given facts were read.")
@click.option(
    "--write", is_flag=True, help="Write a new file into the catalog; one that is there is never replaced."
)
@DIRECTORY
def import_hf(path: Path, source_title: str | None, given: tuple[str, ...], given_source: str | None,
              write: bool, directory: Path | None, **named: Any) -> None:  # fmt: skip
    """Print the catalog file of the model that PATH describes: a config.json, a folder with one, or - for input.

    The file goes to the output, and what it was inferred from beside it.
    """
    today = datetime.now(UTC).date()
    config = (
        config_of(sys.stdin.buffer.read(LARGEST_BYTES), "The input")
        if str(path) == "-"
        else read_config(path)
    )
    try:
        posted = ImportedConfig(
            config=config,
            source=None
            if source_title is None
            else SourceFields(title=source_title, kind="vendor", accessed=today),
            given=_given(given, given_source, today),
            **{**named, "aliases": list(named["aliases"])},
        )
    except ValidationError as error:
        raise invalid_request(error, ImportedConfig) from error
    imported = import_config(posted, today)
    if write:
        _write(imported, catalog_root(directory or environment().catalog_dir))
    else:
        click.echo(file_text(imported.file), nl=False)
    _explain(imported)


def _given(facts: tuple[str, ...], source_title: str | None, today: date) -> GivenFacts | None:
    if not facts:
        return None
    if source_title is None:
        raise InvalidRequest("A given fact needs its source. Add --given-source.", field="given_source")
    values: dict[str, Any] = {"source": SourceFields(title=source_title, kind="vendor", accessed=today)}
    for fact in facts:
        name, said, value = fact.partition("=")
        if not said:
            raise InvalidRequest(f"'{fact}' is no fact. Write --given FIELD=VALUE.", field="given")
        if name not in _GIVEN:
            raise UnknownParameter(name, get_close_matches(name, _GIVEN, n=3), _GIVEN)
        values[name] = int(value) if name in _WHOLE_NUMBERS and value.isascii() and value.isdigit() else value
    if "released" in values:
        try:
            values["released"] = datetime.strptime(values["released"], "%Y-%m-%d").replace(tzinfo=UTC).date()
        except ValueError as error:
            raise InvalidRequest(
                f"released is '{values['released']}'. Write it as 2026-11-29.", field="given"
            ) from error
    return GivenFacts.model_validate(values)


def _write(imported: ImportedModel, root: Path) -> None:
    """A new file, once the catalog with it is known to be whole."""
    with_model(Catalog(read_catalog(root), None), imported)
    path = root / "models" / f"{imported.file.id}.yaml"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(file_text(imported.file))
    except FileExistsError as error:
        raise InvalidRequest(
            f"{path} is there already and is never replaced. Choose another --id.", field="id"
        ) from error
    click.echo(f"{path} is new. Read it, and run `costsvc catalog check`.", err=True)


def _explain(imported: ImportedModel) -> None:
    for one in imported.inferred:
        click.echo(f"{one.what}: {one.value} ({one.read_from})", err=True)
    for point in imported.open_points:
        click.echo(f"open: {point}", err=True)
    for name in imported.unused:
        click.echo(f"unused: {name}", err=True)
    computed, published = parameter_count(imported.file.spec()), imported.file.published_parameters
    held = (
        ""
        if published is None
        else f"; published {published:,.0f}, the released file computed {imported.file.file_parameters():,}"
    )
    click.echo(f"parameters: {computed:,}{held}", err=True)
