"""How one value is written, so that no spreadsheet of any locale misreads it.

A number has a point, no exponent and never exactly three decimals: where the comma is the decimal sign,
0.703 is read as 703. Text that a spreadsheet would run as a formula begins with an apostrophe.
"""

import re
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["text", "number", "day", "flag"]

SIGNIFICANT_DIGITS: Final = 9
PADDED_DECIMALS: Final = 6
MISREAD_DECIMALS: Final = 3
_PLAIN: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
# What begins a formula, plain or in the full-width forms that some spreadsheets accept too.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - the forms meant


def plain_number(value: float | int | Decimal | str) -> str:
    """A number in plain decimals. Decimal text of money keeps its digits; floats keep nine.

    Raises
    ------
    ValueError
        It is not finite: no cell may hold what is not a number.

    Examples
    --------
    >>> [plain_number(value) for value in (512.0, 1e-7, 0.125, 23, "0.703", "2.500000")]
    ['512', '0.0000001', '0.125000', '23', '0.703000', '2.500000']
    """
    text = f"{value:.{SIGNIFICANT_DIGITS}g}" if isinstance(value, float) else str(value)
    if not _PLAIN.fullmatch(text):
        exact = Decimal(text)
        if not exact.is_finite():
            raise ValueError(f"{value} is not a number to write")
        text = format(exact, "f")
    whole, _, decimals = text.partition(".")
    if len(decimals) == MISREAD_DECIMALS:
        return f"{whole}.{decimals.ljust(PADDED_DECIMALS, '0')}"
    return text


def harmless(text: str) -> str:
    """Text that no spreadsheet takes for a formula.

    Examples
    --------
    >>> [harmless(text) for text in ("llama-3-70b", "=1+1", "-2", "@SUM(1)")]
    ['llama-3-70b', "'=1+1", "'-2", "'@SUM(1)"]
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def cell(value: object) -> str:
    """A value as CSV holds it: blank for None, plain decimals, texts as they are.

    Examples
    --------
    >>> [cell(value) for value in (None, True, 512.0, 1e-5, "2.50")]
    ['', 'true', '512', '0.00001', '2.50']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return plain_number(value)
    return value.isoformat() if isinstance(value, date) else str(value)


# Most cells of a table repeat those above them. Typed, because 1, 1.0 and true are written differently.
@lru_cache(maxsize=8192, typed=True)
def written(value: object, kind: Kind) -> str:
    """The same, knowing what the column holds: texts are made harmless, numbers never altered."""
    if kind == "text":
        return harmless(cell(value))
    if kind == "number" and isinstance(value, str) and value:
        return plain_number(value)
    return cell(value)
