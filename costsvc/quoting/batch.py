"""Many requests in one call: rows of JSON, CSV or a workbook in, rows with prices or reasons out."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import islice
from typing import Any, Final

from python_calamine import CalamineError, CalamineWorkbook

from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest
from costsvc.ingest.faults import nearest_parameters
from costsvc.ingest.workbooks import check_workbook
from costsvc.quoting.flat import quote_table
from costsvc.quoting.given import from_json
from costsvc.quoting.request import PARAMETERS
from costsvc.quoting.rows import MOST_KEPT, RowMaker
from costsvc.quoting.tables.table import Column, Row, Table, numbers, texts

MAX_ROWS: Final = 10_000
LABEL: Final = "label"
BEFORE: Final[tuple[Column, ...]] = (*numbers("row"), *texts(LABEL))
_ROWS: Final = "rows"
_KNOWN: Final = (LABEL, *PARAMETERS)
_OTHER_MARKS: Final[Mapping[str, str]] = {";": "semicolons", "\t": "tabs", "|": "bars"}
# A row's first cell beyond the header; no column can be called so.
_EXTRA: Final = " extra"

Given = Mapping[str, Any]


def rows_of_json(body: bytes) -> list[Given]:
    """The objects of `rows`.

    Raises
    ------
    InvalidRequest
        It is not `{"rows": [{…}, …]}`, or has more rows than one call answers.
    """
    rows = from_json(body).get(_ROWS)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidRequest('Send {"rows": [{"model": …, "gpu": …, "ctx": …}, …]}.', field=_ROWS)
    return _capped(rows)


def rows_of_csv(body: bytes) -> list[Given]:
    """Rows below a header of parameter names; blank cells are not given.

    Raises
    ------
    InvalidRequest
        It is no CSV in UTF-8, a column is unknown or stands twice, or there are too many rows.
    """
    try:
        lines = list(csv.reader(io.StringIO(body.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidRequest(f"The body is not CSV in UTF-8: {error}.") from error
    return _tabular(lines)


def rows_of_xlsx(body: bytes) -> list[Given]:
    """The same from the first sheet of a workbook; formulas count as what they last showed.

    Raises
    ------
    InvalidRequest
        It is no workbook, or larger than `check_workbook` allows.
    """
    check_workbook(body)
    try:
        sheet = CalamineWorkbook.from_filelike(io.BytesIO(body)).get_sheet_by_index(0)
        return _tabular(sheet.to_python())
    except CalamineError as error:
        raise InvalidRequest(f"The body is not a workbook (.xlsx): {error}.") from error


def priced(catalog: Catalog, rows: Iterable[Given], today: date) -> Iterator[Row]:
    """Each row's prices, or its reason, beside its number and label."""
    maker = RowMaker(catalog, today)
    numbered = enumerate(rows, start=1)
    # Rows are read ahead, so that those of one case are solved in one evaluation.
    while window := list(islice(numbered, MOST_KEPT)):
        asked = [{name: value for name, value in given.items() if name != LABEL} for _, given in window]
        made = iter(maker.rows([one for one in asked if _EXTRA not in one]))
        for (number, given), one in zip(window, asked, strict=True):
            if _EXTRA in one:
                row = maker.failed(one, "The row has more cells than the header has columns.")
                yield {**row, "row": number, LABEL: str(given.get(LABEL, ""))}
            else:
                yield {**next(made), "row": number, LABEL: str(given.get(LABEL, ""))}


def batch_table(rows: Iterable[Row]) -> Table:
    """Answered rows as a table."""
    return quote_table(rows, before=BEFORE)


def _tabular(lines: Sequence[Sequence[Any]]) -> list[Given]:
    header = [str(name).strip() for name in (lines[0] if lines else ())]
    while header and not header[-1]:
        header.pop()
    if not header:
        raise InvalidRequest("The first line must name the columns, such as model, gpu, ctx; it is empty.")
    _refuse_columns(header)
    return _capped(
        [_row(header, line) for line in lines[1:] if any(_cell(cell) is not None for cell in line)]
    )


def _row(header: Sequence[str], line: Sequence[Any]) -> Given:
    cells = [_cell(cell) for cell in line]
    row = {name: cell for name, cell in zip(header, cells, strict=False) if cell is not None}
    beyond = [cell for cell in cells[len(header) :] if cell is not None]
    return {**row, _EXTRA: beyond} if beyond else row


def _cell(cell: Any) -> Any:
    """A cell's value, None where it is blank; a whole number that a workbook holds as 8192.0 is whole."""
    if isinstance(cell, str):
        return cell.strip() or None
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return cell.date() if isinstance(cell, datetime) else cell


def _refuse_columns(header: Sequence[str]) -> None:
    if len(header) == 1 and (other := next((mark for mark in _OTHER_MARKS if mark in header[0]), None)):
        raise InvalidRequest(
            f"The columns are separated by {_OTHER_MARKS[other]}. Separate them by commas, with a point before "
            f"decimals, or send the sheet as XLSX.",
            field=_ROWS,
        )
    for name in header:
        if name not in _KNOWN:
            nearest = nearest_parameters(name, _KNOWN)
            hint = f"Did you mean {', '.join(nearest)}?" if nearest else f"Known are {', '.join(_KNOWN)}."
            raise InvalidRequest(f"There is no column '{name}'. {hint}", field=name)
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise InvalidRequest(f"Column '{twice[0]}' stands twice. Name each once.", field=twice[0])


def _capped(rows: list[Any]) -> list[Given]:
    if len(rows) > MAX_ROWS:
        raise InvalidRequest(
            f"The batch has {len(rows):,} rows; one call answers {MAX_ROWS:,} at most. Split it.", field=_ROWS
        )
    return rows
