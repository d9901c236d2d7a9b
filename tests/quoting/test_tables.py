"""Tables as workbooks: those of many rows are written as they come."""

import io
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from python_calamine import CalamineWorkbook

from costsvc.quoting.tables.as_xlsx import save_xlsx, to_xlsx
from costsvc.quoting.tables.table import Column, Row, Table, numbers, texts

COLUMNS = (
    Column("day", "day"),
    *texts("text"),
    *numbers(*(f"number_{index}" for index in range(30))),
    Column("flag", "flag"),
)


def table(count: int) -> Table:
    def rows() -> Iterator[Row]:
        for place in range(count):
            figures = {f"number_{index}": place + index / 7 for index in range(30)}
            yield {"day": "2026-11-29", "text": f"=row {place}", **figures, "flag": True}

    return Table(name="things", row_name="thing", columns=COLUMNS, rows=rows())


def test_a_workbook_written_row_by_row_holds_what_one_made_in_memory_does() -> None:
    saved = io.BytesIO()
    save_xlsx(table(20), saved)
    sheets = [
        CalamineWorkbook.from_filelike(io.BytesIO(book)).get_sheet_by_index(0).to_python()
        for book in (saved.getvalue(), to_xlsx(table(20)))
    ]
    assert sheets[0] == sheets[1]
    assert len(sheets[0]) == 21


def test_rows_that_are_written_take_no_memory_and_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    peaks = []
    for count in (20, 200):
        with (tmp_path / "book").open("w+b") as file:
            tracemalloc.start()
            save_xlsx(table(count), file)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
    assert [file.name for file in tmp_path.iterdir()] == ["book"]
