"""A table as CSV: comma, one header line, line feeds, UTF-8 without a byte order mark."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from costsvc.quoting.tables.cells import written
from costsvc.quoting.tables.table import Column, Row, Table


def csv_line(cells: Iterable[object]) -> str:
    """One line, quoted where it has to be."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def csv_header(columns: Sequence[Column]) -> str:
    """The first line."""
    return csv_line(column.name for column in columns)


def csv_row(columns: Sequence[Column], row: Row) -> str:
    """One row's line; a column that the row lacks is blank."""
    return csv_line(written(row.get(column.name), column.kind) for column in columns)


def csv_lines(table: Table) -> Iterator[str]:
    """Header and rows, one at a time."""
    yield csv_header(table.columns)
    for row in table.rows:
        yield csv_row(table.columns, row)


def to_csv(table: Table) -> bytes:
    """The whole file."""
    return "".join(csv_lines(table)).encode()
