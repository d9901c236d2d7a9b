"""Plain values: what every section writes its numbers with."""

import math
from typing import Final, SupportsFloat, TypeAlias

import numpy as np
from numpy.typing import NDArray

Plain: TypeAlias = "dict[str, Plain] | list[Plain] | str | int | float | bool | None"
Section: TypeAlias = dict[str, Plain]
Number: TypeAlias = SupportsFloat | NDArray[np.generic]

DIGITS = 9
_NINE_DIGITS: Final = f"%.{DIGITS}g"


class Lasting:
    """What many answers share and nobody changes. `json` is its text once somebody has written it."""

    json: bytes | None = None


class LastingSection(dict[str, Plain], Lasting):
    """A section of that kind."""


class LastingList(list[Plain], Lasting):
    """A list of that kind."""


def number(value: Number) -> float:
    """A finite number to nine significant digits, the first of an array.

    Raises
    ------
    ValueError
        It is not finite: nothing that is not a number may leave in an answer.
    """
    first = value if type(value) is float else number_exact(value)
    if not math.isfinite(first):
        raise ValueError(f"{first} is not a number to answer with")
    return float(_NINE_DIGITS % first)


def whole(value: Number) -> int:
    """A number rounded to an integer, such as bytes."""
    return round(number_exact(value))


def number_exact(value: Number) -> float:
    """The first of an array, unrounded."""
    return float(value.item(0) if isinstance(value, np.ndarray) else value)
