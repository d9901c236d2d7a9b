"""Workbooks with something changed in a part, or in the archive around the parts."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

import xlsxwriter
from hypothesis import strategies as st

from tests.fuzz.odd import changed

_ROWS: Final[tuple[tuple[object, ...], ...]] = (
    ("model", "gpu", "ctx", "output", "label"),
    ("llama-3.1-8b", "h100", 8192, 512, "a"),
    ("llama-3-70b", "h100", 8192.5, "", "=b"),
)
_CHANGED: Final = (
    "xl/worksheets/sheet1.xml",
    "xl/sharedStrings.xml",
    "xl/workbook.xml",
    "[Content_Types].xml",
)


def inputs() -> st.SearchStrategy[bytes]:
    """Bodies of a batch."""
    parts = st.one_of(
        [st.tuples(st.just(name), changed((_parts()[name], *_more(name)))) for name in _CHANGED]
    )
    return st.lists(parts, min_size=1, max_size=2).map(_packed) | changed([_packed([])])


def _packed(others: Sequence[tuple[str, bytes]]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_STORED) as folded:
        for name, content in {**_parts(), **dict(others)}.items():
            folded.writestr(name, content)
    return held.getvalue()


def _more(name: str) -> tuple[bytes, ...]:
    """The same part with dates, truth values, errors, formulas and texts inside cells."""
    if name != _CHANGED[0]:
        return ()
    cells = (
        b'<c r="A2" t="inlineStr"><is><t>llama-3.1-8b</t></is></c><c r="B2" t="str"><v>h100</v></c>'
        b'<c r="C2" t="b"><v>1</v></c><c r="D2" t="e"><v>#N/A</v></c><c r="E2" s="1"><f>1+1</f><v>1e400</v></c>'
        b'<c r="ZZ9999999999" t="d"><v>2026-11-29T00:00:00</v></c><c r="C2" t="s"><v>99999</v></c>'
    )
    whole = _parts()[name]
    head, mark, tail = whole.partition(b"</row>")
    return (head + mark + b'<row r="2">' + cells + b"</row>" + tail,)


@cache
def _parts() -> Mapping[str, bytes]:
    held = io.BytesIO()
    with xlsxwriter.Workbook(held) as workbook:
        sheet = workbook.add_worksheet()
        for number, row in enumerate(_ROWS):
            sheet.write_row(number, 0, row)
    with zipfile.ZipFile(held) as folded:
        return {part.filename: folded.read(part) for part in folded.infolist()}
