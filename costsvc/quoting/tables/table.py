"""A table: what every format but JSON is written from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from costsvc.quoting.tables.cells import Kind

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its name, which ends in its unit."""

    name: str
    kind: Kind = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of one shape. `name` is that of the whole, `row_name` that of one row."""

    name: str
    row_name: str
    columns: Sequence[Column]
    rows: Iterable[Row]


def texts(*names: str) -> tuple[Column, ...]:
    """Columns of text."""
    return tuple(Column(name) for name in names)


def numbers(*names: str) -> tuple[Column, ...]:
    """Columns of numbers."""
    return tuple(Column(name, "number") for name in names)
