"""Answers as JSON: numbers as Python spells them, none that is not finite, and what answers share written once."""

from math import isfinite
from typing import Any, Final

import msgspec

from costsvc.quoting.answer.plain import LastingList, LastingSection

_LISTS: Final = (list, tuple)
_LASTING: Final = (LastingList, LastingSection)
_WRITTEN_AS_IS: Final = frozenset({str, int, bool, type(None)})
# Between these msgspec and Python spell a number alike; beyond, Python's `1e-05` would be `0.00001`.
_ALIKE_FROM: Final = 1e-4
_ALIKE_BELOW: Final = 1e16


def to_json(answer: object) -> bytes:
    """JSON of an answer.

    Raises
    ------
    ValueError
        A number is not finite, which is a fault of ours and never leaves as null.
    """
    return msgspec.json.encode(_spelled(answer))


def _spelled(value: Any) -> Any:
    """A value of which msgspec writes the text that is wanted. What answers hold most of needs no call of its own."""
    kind = type(value)
    if kind is dict:
        return {
            name: one
            if (of := type(one)) in _WRITTEN_AS_IS or (of is float and _ALIKE_FROM <= one < _ALIKE_BELOW)
            else _spelled(one)
            for name, one in value.items()
        }
    if isinstance(value, _LASTING):
        return _written_once(value)
    if isinstance(value, _LISTS):
        return [_spelled(one) for one in value]
    if kind in _WRITTEN_AS_IS:
        return value
    if isinstance(value, float):
        return float(value) if _ALIKE_FROM <= value < _ALIKE_BELOW else _number(value)
    return _spelled(msgspec.to_builtins(value))


def _number(value: float) -> msgspec.Raw:
    if not isfinite(value):
        raise ValueError(f"{value} is not a number to answer with")
    return msgspec.Raw(float.__repr__(value).encode())


def _written_once(value: LastingSection | LastingList) -> msgspec.Raw:
    if value.json is None:
        plain = dict(value) if isinstance(value, dict) else list(value)
        value.json = to_json(plain)
    return msgspec.Raw(value.json)
