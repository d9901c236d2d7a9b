"""Workbooks from strangers, looked through before they are read.

A reader holds the rectangle around all cells of a sheet, so one cell in the last corner of a file of five kilobytes
would take half a terabyte; and what is packed may unfold without bound. Both are refused here, by number.
"""

import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from typing import Final
from xml.parsers import expat

from costsvc.errors import InvalidRequest

MOST_UNFOLDED_BYTES: Final = 200_000_000
MOST_ROWS: Final = 20_000
MOST_COLUMNS: Final = 256
_MOST_PARTS: Final = 1_000
_MAGIC: Final = b"PK\x03\x04"
_WORKBOOK: Final = "xl/workbook.xml"
# What would make a reader that guesses take the file for another kind, to which other rules apply.
_OTHER_KINDS: Final = frozenset({"xl/workbook.bin", "content.xml", "mimetype"})
_CHUNK_BYTES: Final = 1 << 20
_LETTERS: Final = 26
_UNREADABLE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    expat.ExpatError,
    # XML in an encoding that does not exist.
    LookupError,
    EOFError,
    OSError,
    ValueError,
    # Encrypted, or packed in a way that there is no reader for.
    RuntimeError,
)


def check_workbook(body: bytes) -> None:
    """Refuse what is no .xlsx workbook of bounded size.

    Raises
    ------
    InvalidRequest
        It is none; it unfolds beyond `MOST_UNFOLDED_BYTES`; it has a cell beyond `MOST_ROWS` or `MOST_COLUMNS`; or
        it declares entities, by which text could grow without bound or name other files.
    """
    if not body.startswith(_MAGIC):
        raise _none("it does not begin like one")
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as folded:
            _check_parts(folded)
            left_bytes = MOST_UNFOLDED_BYTES
            for part in folded.infolist():
                left_bytes -= _look_through(folded, part, left_bytes)
    except _UNREADABLE as error:
        raise _none(str(error)) from error


def _check_parts(folded: zipfile.ZipFile) -> None:
    unfolded_bytes = sum(part.file_size for part in folded.infolist())
    if unfolded_bytes > MOST_UNFOLDED_BYTES:
        raise _too_large(unfolded_bytes)
    names = folded.namelist()
    lowered = {name.lower() for name in names}
    if _WORKBOOK not in lowered or lowered & _OTHER_KINDS:
        raise _none(f"it holds no {_WORKBOOK}, or parts of another kind of file")
    if len(lowered) != len(names):
        raise _none("it holds a part twice")
    if len(names) > _MOST_PARTS:
        raise _none(f"it holds {len(names):,} parts; at most {_MOST_PARTS:,} are read")


def _look_through(folded: zipfile.ZipFile, part: zipfile.ZipInfo, left_bytes: int) -> int:
    """Unfold a part, whatever its own size says, and look at its cells where it is XML. Answers its size. [B]"""
    seen = _Cells() if part.filename.lower().endswith((".xml", ".rels", ".vml")) else None
    size_bytes = 0
    with folded.open(part) as unfolding:
        while piece := unfolding.read(_CHUNK_BYTES):
            size_bytes += len(piece)
            if size_bytes > left_bytes:
                raise _too_large(MOST_UNFOLDED_BYTES + size_bytes - left_bytes)
            if seen is not None:
                seen.feed(piece)
    return size_bytes


class _Cells:
    """Reads XML and refuses a cell that lies too far out."""

    def __init__(self) -> None:
        parser = self._parser = expat.ParserCreate()
        parser.StartElementHandler = self._begin
        parser.StartDoctypeDeclHandler = self._refuse_entities
        self._row, self._column = 0, 0
        self.feed: Callable[[bytes], object] = parser.Parse

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        if tag == "c":
            self._place(attributes.get("r", ""))
        elif tag == "row":
            self._row = _number(attributes.get("r", ""), else_=self._row + 1)
            self._column = 0
        elif tag in ("v", "is", "f") and (self._row > MOST_ROWS or self._column > MOST_COLUMNS):
            raise InvalidRequest(
                f"The workbook has a cell in row {self._row:,}, column {self._column:,}; a sheet is read up to row "
                f"{MOST_ROWS:,} and column {MOST_COLUMNS:,}. Delete what lies beyond, or send CSV."
            )

    def _place(self, named: str) -> None:
        letters = named.rstrip("0123456789")
        if letters.isascii() and letters.isalpha():
            self._column = _column(letters)
            self._row = _number(named[len(letters) :], else_=self._row)
        else:
            self._column += 1

    def _refuse_entities(self, *_: object) -> None:
        raise InvalidRequest("The workbook declares entities, which no spreadsheet program writes.")


def _column(letters: str) -> int:
    """The number of a column by its letters, from 1.

    Examples
    --------
    >>> _column("A"), _column("Z"), _column("AA"), _column("xfd")
    (1, 26, 27, 16384)
    """
    column = 0
    for letter in letters.upper():
        column = min(column * _LETTERS + ord(letter) - ord("A") + 1, 10**9)
    return column


def _number(digits: str, *, else_: int) -> int:
    return min(int(digits), 10**9) if digits.isascii() and digits.isdigit() and len(digits) < 20 else else_


def _none(why: str) -> InvalidRequest:
    return InvalidRequest(f"The body is not a workbook (.xlsx): {why}.")


def _too_large(unfolded_bytes: int) -> InvalidRequest:
    return InvalidRequest(
        f"The workbook unfolds to {unfolded_bytes:,} bytes or more; at most {MOST_UNFOLDED_BYTES:,} are read."
    )
