"""A table as a workbook: typed numbers and days, text that never becomes a formula or a link."""

import io
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, BinaryIO, Final

import xlsxwriter
from xlsxwriter.format import Format
from xlsxwriter.workbook import Workbook
from xlsxwriter.worksheet import Worksheet

from costsvc.quoting.tables.table import Column, Table

# Equal answers are equal bytes, so a workbook says no time at which it was made.
MADE: Final = datetime(2000, 1, 1, tzinfo=UTC).replace(tzinfo=None)
OPTIONS: Final = {
    "in_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
}
WIDEST: Final = 40
# What a cell of a workbook holds at most. [characters]
LONGEST_TEXT: Final = 32_767
_NUMBER_FORMAT: Final = "#,##0.######"


def new_workbook(buffer: BinaryIO, **more: Any) -> Workbook:
    """An empty workbook without a time stamp, which runs no text as a formula."""
    book = xlsxwriter.Workbook(buffer, {**OPTIONS, **more})
    book.set_properties(
        {
            "created": MADE,
            "title": "costsvc",
            "comments": "Prices in US dollars unless a column says otherwise",
        }
    )
    return book


def to_xlsx(table: Table) -> bytes:
    """A workbook of one sheet."""
    buffer = io.BytesIO()
    save_xlsx(table, buffer)
    return buffer.getvalue()


def save_xlsx(table: Table, file: BinaryIO) -> None:
    """The same into a file, a row at a time."""
    book = new_workbook(file, constant_memory=True)
    write_sheet(book, table)
    book.close()


def write_sheet(book: Workbook, table: Table) -> Worksheet:
    """A sheet of a table: its header stays in view."""
    sheet = book.add_worksheet(table.name)
    bold = book.add_format({"bold": True, "bottom": 1})
    formats = {
        "number": book.add_format({"num_format": _NUMBER_FORMAT}),
        "day": book.add_format({"num_format": "yyyy-mm-dd"}),
    }
    for index, column in enumerate(table.columns):
        sheet.set_column(index, index, min(max(len(column.name) + 1, 9), WIDEST))
        sheet.write_string(0, index, column.name, bold)
    sheet.freeze_panes(1, 0)
    for number, row in enumerate(table.rows, start=1):
        for index, column in enumerate(table.columns):
            write_cell(sheet, (number, index), row.get(column.name), column, formats)
    return sheet


def write_cell(
    sheet: Worksheet, at: tuple[int, int], value: object, column: Column, formats: Mapping[str, Format]
) -> None:
    """One value, typed by its column."""
    if value is None or value == "":
        return
    if column.kind == "number" and isinstance(value, int | float | Decimal | str):
        sheet.write_number(*at, float(value), formats["number"])
    elif column.kind == "flag":
        sheet.write_boolean(*at, bool(value))
    elif column.kind == "day":
        day = value if isinstance(value, date) else date.fromisoformat(str(value))
        sheet.write_datetime(*at, datetime.combine(day, time()), formats["day"])
    else:
        sheet.write_string(*at, _text(value))


def error_workbook(text: str) -> bytes:
    """A sentence in place of an answer."""
    buffer = io.BytesIO()
    book = new_workbook(buffer)
    book.add_worksheet("error").write_string(0, 0, _text(text))
    book.close()
    return buffer.getvalue()


def widths(sheet: Worksheet, sizes: Sequence[float]) -> None:
    """Widths of the first columns. [characters]"""
    for index, size in enumerate(sizes):
        sheet.set_column(index, index, size)


def _text(value: object) -> str:
    return str(value)[:LONGEST_TEXT]
