"""One value of a quote, or one column of a table, as plain text without byte order mark: a cell can compute with it."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from costsvc.errors import InvalidRequest
from costsvc.quoting.flat import COLUMNS, value_at
from costsvc.quoting.tables.cells import cell, plain_number
from costsvc.quoting.tables.table import Row, Table

# What people ask for most, by a short name → its column.
FIELDS: Final[Mapping[str, str]] = {
    **{
        f"{kind}{bound}": f"{kind}{bound}_usd_per_mtok"
        for kind in ("input", "cached_input", "output", "blended")
        for bound in ("", "_low", "_high")
    },
    "request": "request_usd",
    "gpu_hour": "usd_per_gpu_hour",
}
_FIELD: Final = "field"


def value_of(row: Row, answer: Mapping[str, Any], field: str | None) -> str:
    """A value by short name, by column, or by its dotted path in the answer.

    Raises
    ------
    InvalidRequest
        No such value, or one that is no single value.
    """
    if field is None:
        raise InvalidRequest(
            f"A .txt answer is one value: say which with field, such as field=output. Short names are "
            f"{', '.join(FIELDS)}; columns of .csv and paths such as latency.ttft_ms will do too.",
            field=_FIELD,
        )
    column = FIELDS.get(field, field)
    try:
        value = row[column] if column in row else value_at(answer, column)
    except KeyError:
        nearest = get_close_matches(field, [*FIELDS, *COLUMNS], n=3)
        hint = f"Nearest: {', '.join(nearest)}." if nearest else f"Short names are {', '.join(FIELDS)}."
        raise InvalidRequest(f"The quote has no value '{field}'. {hint}", field=_FIELD) from None
    if isinstance(value, Mapping | list):
        raise InvalidRequest(f"'{field}' is not one value. Name one inside it.", field=_FIELD)
    return _amount(value) if isinstance(value, str) else cell(value)


def column_of(table: Table, field: str | None) -> str:
    """A column of a table, a line per row and none after the last, so that a single row's value is a number.

    Raises
    ------
    InvalidRequest
        No such column.
    """
    names = [column.name for column in table.columns]
    if field is None:
        raise InvalidRequest(
            f"A .txt answer is one column: say which with field. Columns are {', '.join(names)}.",
            field=_FIELD,
        )
    if field not in names:
        nearest = get_close_matches(field, names, n=3) or names
        raise InvalidRequest(f"There is no column '{field}'. Nearest: {', '.join(nearest)}.", field=_FIELD)
    kind = next(column.kind for column in table.columns if column.name == field)
    values = (row.get(field) for row in table.rows)
    return "\n".join(
        _amount(value) if kind == "number" and isinstance(value, str) else cell(value) for value in values
    )


def _amount(text: str) -> str:
    """Money is text of a number; other texts stay as they are."""
    try:
        return plain_number(text)
    except ArithmeticError:
        return text
