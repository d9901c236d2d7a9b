"""Workbooks from strangers: honest ones pass, those that would fill the memory or name other files do not."""

import io
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.utils import get_column_letter

from costsvc.errors import InvalidRequest
from costsvc.ingest import workbooks
from costsvc.ingest.workbooks import MOST_COLUMNS, MOST_ROWS, check_workbook
from costsvc.quoting.batch import rows_of_xlsx


def workbook(**cells: str) -> bytes:
    """A workbook with these cells by name."""
    made = openpyxl.Workbook()
    sheet = made.active
    assert sheet is not None
    for name, value in {"A1": "model", "B1": "gpu", **cells}.items():
        sheet[name] = value
    written = io.BytesIO()
    made.save(written)
    return written.getvalue()


def changed(body: bytes, change: Callable[[str, bytes], bytes | None]) -> bytes:
    """The same parts, each as `change` leaves it."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(body)) as old, zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return written.getvalue()


def in_sheet(text: str) -> bytes:
    """A workbook whose sheet is this XML."""
    return changed(workbook(), lambda name, old: text.encode() if "sheet1" in name else old)


def with_part(name: str, content: bytes) -> bytes:
    written = io.BytesIO(workbook())
    with zipfile.ZipFile(written, "a", zipfile.ZIP_DEFLATED) as folded:
        folded.writestr(name, content)
    return written.getvalue()


def sheet(row: str) -> bytes:
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return in_sheet(f'<x:worksheet xmlns:x="{space}"><x:sheetData>{row}</x:sheetData></x:worksheet>')


def lying(body: bytes) -> bytes:
    """Each part says that it unfolds to one byte."""
    size_at = {b"PK\x03\x04": 22, b"PK\x01\x02": 24}
    for magic, offset in size_at.items():
        place = body.find(magic)
        while place >= 0:
            body = body[: place + offset] + struct.pack("<I", 1) + body[place + offset + 4 :]
            place = body.find(magic, place + 4)
    return body


def test_xml_in_an_encoding_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="is not a workbook"):
        check_workbook(in_sheet('<?xml version="1.0" encoding="U-TF-8"?><worksheet/>'))


def test_an_honest_workbook_is_read() -> None:
    body = workbook(A2="llama-3-70b", B2="h100", A3="x")
    check_workbook(body)
    assert rows_of_xlsx(body) == [{"model": "llama-3-70b", "gpu": "h100"}, {"model": "x"}]


def test_the_last_cell_that_is_read_passes() -> None:
    name = get_column_letter(MOST_COLUMNS)
    check_workbook(workbook(**{f"{name}{MOST_ROWS}": "x"}))


@pytest.mark.parametrize(
    "body",
    [
        workbook(XFD1048576="x"),
        workbook(**{f"A{MOST_ROWS + 1}": "x"}),
        workbook(XFD1="x"),
        sheet('<x:row r="999999999999999999999"><x:c r="A999999999"><x:v>1</x:v></x:c></x:row>'),
        sheet("<x:row r='9999999'><x:c><x:v>1</x:v></x:c></x:row>"),
        sheet("<x:row><x:c r='&#88;FD1'><x:v>1</x:v></x:c></x:row>"),
        sheet(f'<x:row r="{MOST_ROWS}"/><x:row><x:c t="inlineStr"><x:is><x:t>x</x:t></x:is></x:c></x:row>'),
        sheet("<x:row>" + "<x:c><x:v>1</x:v></x:c>" * (MOST_COLUMNS + 1) + "</x:row>"),
    ],
    ids=["corner", "row", "column", "absurd", "implied column", "escaped", "implied row", "implied columns"],
)
def test_a_cell_far_out_is_refused_with_the_numbers(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="is read up to row 20,000 and column 256"):
        check_workbook(body)


def test_empty_cells_far_out_do_not_matter() -> None:
    check_workbook(sheet('<x:row r="1048576"><x:c r="XFD1048576"/></x:row>'))


@pytest.mark.parametrize("as_it_says", [bytes, lying], ids=["honest", "lying"])
def test_what_unfolds_beyond_the_bound_is_refused(
    as_it_says: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbooks, "MOST_UNFOLDED_BYTES", 100_000)
    with pytest.raises(InvalidRequest, match=r"unfolds to|not a workbook"):
        check_workbook(as_it_says(with_part("xl/media/image1.png", b" " * 1_000_000)))


ENTITIES = """<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>"""


@pytest.mark.parametrize(
    "body",
    [
        in_sheet(f"{ENTITIES}<worksheet><sheetData><row><c><v>&c;</v></c></row></sheetData></worksheet>"),
        with_part("xl/other.xml", f"{ENTITIES}<x>&b;</x>".encode()),
    ],
)
def test_entities_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="declares entities"):
        check_workbook(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"PK\x03\x04",
        b"model,gpu\n",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + workbook(),
        with_part("mimetype", b"application/vnd.oasis.opendocument.spreadsheet"),
        with_part("content.xml", b"<x/>"),
        with_part("XL/Workbook.xml", b"<x/>"),
        changed(workbook(), lambda name, old: None if name == "xl/workbook.xml" else old),
        in_sheet("<worksheet><"),
        in_sheet("<worksheet></sheet>"),
    ],
)
def test_what_is_no_workbook_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="not a workbook"):
        rows_of_xlsx(body)


# Made once: a workbook holds the time of its making, and examples have to be the same again.
WHOLE = workbook(A2="x", B2="y")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_broken_workbook_is_refused_or_read_and_never_a_fault(data: st.DataObject) -> None:
    body = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 8))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InvalidRequest):
        rows_of_xlsx(bytes(body))
