"""A table as a workbook: typed numbers and days, text that never becomes a formula or a link."""

import io
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, BinaryIO, Final

import xlsxwriter
from xlsxwriter.workbook import Workbook
from xlsxwriter.worksheet import Worksheet

from costsvc.quoting.tables.cells import Kind
from costsvc.quoting.tables.table import Table

# Equal answers are equal bytes, so a workbook says no time at which it was made.
MADE: Final = datetime(2000, 1, 1, tzinfo=UTC).replace(tzinfo=None)
OPTIONS: Final = {
    "in_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
}
NARROWEST: Final = 9
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
    with new_workbook(buffer) as book:
        write_sheet(book, table)
    return buffer.getvalue()


def save_xlsx(table: Table, file: BinaryIO) -> None:
    """The same into a file, a row at a time: what is not written yet is on disk, never all in memory."""
    with new_workbook(file, in_memory=False, constant_memory=True) as book:
        write_sheet(book, table)


def write_sheet(book: Workbook, table: Table) -> Worksheet:
    """A sheet of a table: its header stays in view, and columns are as wide as their texts, up to a limit."""
    sheet = book.add_worksheet(table.name)
    bold = book.add_format({"bold": True, "bottom": 1})
    at_right = book.add_format({"bold": True, "bottom": 1, "align": "right"})
    writers = _writers(book, sheet)
    columns = [(index, column.name, writers[column.kind]) for index, column in enumerate(table.columns)]
    longest = [max(len(column.name), NARROWEST - 1) for column in table.columns]
    texts = {index for index, column in enumerate(table.columns) if column.kind == "text"}
    for index, column in enumerate(table.columns):
        sheet.write_string(0, index, column.name, at_right if column.kind == "number" else bold)
    sheet.freeze_panes(1, 0)
    for number, row in enumerate(table.rows, start=1):
        for index, name, write in columns:
            value = row.get(name)
            if value is not None and value != "":
                write(number, index, value)
                if index in texts:
                    longest[index] = max(longest[index], len(str(value)))
    widths(sheet, [min(characters + 1, WIDEST) for characters in longest])
    return sheet


def _writers(book: Workbook, sheet: Worksheet) -> Mapping[Kind, Callable[[int, int, Any], None]]:
    """What writes one value, typed by its column, at a row and a column of a sheet."""
    of_numbers = book.add_format({"num_format": _NUMBER_FORMAT})
    of_days = book.add_format({"num_format": "yyyy-mm-dd"})

    def text(row: int, column: int, value: object) -> None:
        sheet.write_string(row, column, _text(value))

    def number(row: int, column: int, value: object) -> None:
        if isinstance(value, (int, float, Decimal, str)):
            sheet.write_number(row, column, float(value), of_numbers)
        else:
            text(row, column, value)

    def flag(row: int, column: int, value: object) -> None:
        sheet.write_boolean(row, column, bool(value))

    def day(row: int, column: int, value: object) -> None:
        read = value if isinstance(value, date) else date.fromisoformat(str(value))
        sheet.write_datetime(row, column, datetime.combine(read, time()), of_days)

    return {"text": text, "number": number, "flag": flag, "day": day}


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
