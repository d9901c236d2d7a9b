"""Many quotes on the command line: a file of rows in, rows with prices or reasons out."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import track

from costsvc.cli.catalogs import current_catalog
from costsvc.cli.lazy import FAILED, BadUsage
from costsvc.quoting.batch import (
    BEFORE,
    Given,
    batch_table,
    priced,
    rows_of_csv,
    rows_of_json,
    rows_of_xlsx,
)
from costsvc.quoting.flat import ERROR, QUOTE_COLUMNS
from costsvc.quoting.tables.as_csv import csv_lines
from costsvc.quoting.tables.table import Row
from costsvc.quoting.workbooks import save_xlsx

_READERS: Final[Mapping[str, Callable[[bytes], list[Given]]]] = {
    ".csv": rows_of_csv,
    ".json": rows_of_json,
    ".xlsx": rows_of_xlsx,
}
_STANDARD: Final = "-"


@click.command
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True, dir_okay=False, exists=True))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Absent: standard output.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["csv", "json", "xlsx"]),
    help="Absent: what --out ends in, else csv.",
)
def batch(file: Path, out: Path | None, output_format: str | None) -> None:
    """Price each row of FILE (.csv, .json or .xlsx; - is CSV on standard input).

    Columns are the parameters of a quote, and label. A row that cannot be priced says why in its error, and
    the exit status is then 1.
    """
    chosen = output_format or (out.suffix.removeprefix(".") if out else "csv")
    if chosen not in ("csv", "json", "xlsx"):
        raise BadUsage(f"--out ends in .{chosen}; end it in .csv, .json or .xlsx, or give --format.")
    if chosen == "xlsx" and out is None:
        raise BadUsage("A workbook needs a file to go to: give --out.")
    rows = _read(file)
    failed: list[int] = []
    answered = _noting(failed, priced(current_catalog(), _with_progress(rows), datetime.now(UTC).date()))
    _write(answered, chosen, out)
    if failed:
        click.echo(f"{len(failed)} of {len(rows)} rows have no price; their error says why.", err=True)
        sys.exit(FAILED)


def _read(file: Path) -> list[Given]:
    if str(file) == _STANDARD:
        return rows_of_csv(sys.stdin.buffer.read())
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise BadUsage(f"{file.name} ends in none of {', '.join(_READERS)}.")
    return reader(file.read_bytes())


def _write(rows: Iterator[Row], chosen: str, out: Path | None) -> None:
    if chosen == "xlsx" and out is not None:
        with out.open("wb") as workbook:
            save_xlsx(batch_table(rows), workbook)
        return
    text = csv_lines(batch_table(rows)) if chosen == "csv" else _json_lines(rows)
    if out is None:
        sys.stdout.writelines(text)
        return
    with out.open("w", encoding="utf-8", newline="") as written:
        written.writelines(text)


def _json_lines(rows: Iterator[Row]) -> Iterator[str]:
    names = [column.name for column in (*BEFORE, *QUOTE_COLUMNS)]
    items = [{name: row.get(name) for name in names} for row in rows]
    yield json.dumps({"items": items}, allow_nan=False, ensure_ascii=False) + "\n"


def _noting(failed: list[int], rows: Iterator[Row]) -> Iterator[Row]:
    """The rows as they come; the numbers of those that failed are noted."""
    for row in rows:
        if row.get(ERROR):
            failed.append(row["row"])
        yield row


def _with_progress(rows: list[Given]) -> Iterator[Given]:
    if not sys.stderr.isatty():
        return iter(rows)
    return iter(track(rows, description="Quotes", console=Console(stderr=True), transient=True))
