"""A table as XML: an element per column, so that `number(/quote/output)` is a number in every locale."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from costsvc.quoting.tables.cells import cell, written
from costsvc.quoting.tables.table import Column, Row, Table

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
# What XML 1.0 cannot hold, not even escaped.
_FORBIDDEN: Final = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


def to_xml(table: Table, *, single: bool = False, short: Mapping[str, str] | None = None) -> bytes:
    """All rows below an element of the table's name; a `single` row is the root itself.

    `short` are further names of columns, written first.
    """
    named = {column.name: column for column in table.columns}
    elements = [*((name, named[column]) for name, column in (short or {}).items()), *named.items()]
    rows = [_row(table.row_name, elements, row) for row in table.rows]
    body = "".join(rows) if single else f"<{table.name}>{''.join(rows)}</{table.name}>"
    return f"{_HEAD}{body}\n".encode()


def xml_error(text: str) -> bytes:
    """A sentence in place of an answer."""
    return f"{_HEAD}<error>{_safe(text)}</error>\n".encode()


def _row(name: str, elements: Sequence[tuple[str, Column]], row: Row) -> str:
    inner = "".join(f"<{element}>{_safe(_text(column, row))}</{element}>" for element, column in elements)
    return f"<{name}>{inner}</{name}>"


def _text(column: Column, row: Row) -> str:
    """Numbers as CSV writes them; texts as they are, for nothing runs them."""
    value = row.get(column.name)
    return cell(value) if column.kind == "text" else written(value, column.kind)


def _safe(text: str) -> str:
    return escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text), quote=False)
