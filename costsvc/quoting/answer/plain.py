"""Plain values: what every section writes its numbers with."""

from typing import TypeAlias

import numpy as np

Plain: TypeAlias = "dict[str, Plain] | list[Plain] | str | int | float | bool | None"
Section: TypeAlias = dict[str, Plain]

DIGITS = 9


def number(value: object) -> float:
    """A finite number to nine significant digits, the first of an array.

    Raises
    ------
    ValueError
        It is not finite: nothing that is not a number may leave in an answer.
    """
    first = float(np.ravel(np.asarray(value, dtype=np.float64))[0])
    if not np.isfinite(first):
        raise ValueError(f"{first} is not a number to answer with")
    return float(f"{first:.{DIGITS}g}")


def whole(value: object) -> int:
    """A number rounded to an integer, such as bytes."""
    return round(number_exact(value))


def number_exact(value: object) -> float:
    """The first of an array, unrounded."""
    return float(np.ravel(np.asarray(value, dtype=np.float64))[0])
