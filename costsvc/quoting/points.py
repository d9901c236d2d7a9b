"""Rows of a table of points: text fields to numbers, blanks to None, in the user's words."""

import math
import re
from collections.abc import Mapping

from costsvc.errors import InvalidRequest

_LEADING_NUMBER = re.compile(r"^\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)")
_COUNTED = re.compile(r"^\s*\d+\s*[xX]\s+")
_REMARK = re.compile(r"\s*\(.*?\)|\s+runtime$|\s*\+.*$|\s+dp-attn$")
_AS_RELEASED = frozenset({"?", "-", "native"})


def text_of(point: Mapping[str, str], name: str) -> str | None:
    """A field's text; None where it is blank or absent."""
    return (point.get(name) or "").strip() or None


def number_of(point: Mapping[str, str], name: str, *, least: float = 0.0) -> float | None:
    """A field's number, which may be written as a float and be followed by words ("0.9 of free").

    Raises
    ------
    InvalidRequest
        It is no number, not finite, or not above `least`.
    """
    text = text_of(point, name)
    if text is None:
        return None
    match = _LEADING_NUMBER.match(text)
    value = float(match.group(1)) if match else math.nan
    if not math.isfinite(value) or value < least:
        raise InvalidRequest(f"{name} is '{text}'; write a number of at least {least:g}.", field=name)
    return value


def count_of(point: Mapping[str, str], name: str) -> int | None:
    """A field's whole number, at least 1.

    Raises
    ------
    InvalidRequest
        It has a fraction, or is below 1.
    """
    value = number_of(point, name, least=1.0)
    if value is None:
        return None
    if value != int(value):
        raise InvalidRequest(f"{name} is {value:g}; write a whole number.", field=name)
    return int(value)


def required_text(point: Mapping[str, str], name: str) -> str:
    """A field that must not be blank."""
    text = text_of(point, name)
    if text is None:
        raise InvalidRequest(f"{name} is blank; fill it in.", field=name)
    return text


def required_number(point: Mapping[str, str], name: str) -> float:
    """A number that must not be blank, at least 1."""
    value = number_of(point, name, least=1.0)
    if value is None:
        raise InvalidRequest(f"{name} is blank; fill it in.", field=name)
    return value


def plain_gpu(gpu: str) -> str:
    """`4x H100 (80GB inferred)` to `H100`: how many there are stands in its own field, remarks in none."""
    return _REMARK.sub("", _COUNTED.sub("", gpu)).strip()


def plain_dtype(dtype: str | None) -> str | None:
    """`mxfp4(marlin)` to `mxfp4`; None where the table says that it is as released."""
    if dtype is None or dtype in _AS_RELEASED:
        return None
    return _REMARK.sub("", dtype).strip() or None
