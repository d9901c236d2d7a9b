"""Formulas of a spreadsheet, recorded while the engine's own functions run on them.

A `Formula` stands where the engine expects a number. Arithmetic and NumPy's functions on it give further
formulas, so that a sheet holds what the engine computes and cannot drift from it. It also carries today's
value, which decides a Python `if`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isnan
from typing import Any, Final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

Number = float | int | bool

ROW: Final = "{row}"
"""Stands for the row in references to cells of the same row."""


class UnknownOperation(TypeError):
    """The engine used a function that has no counterpart in a spreadsheet yet."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What a row formula does: its words, the function, and what it is applied to."""

    words: str
    compute: Callable[..., Any]
    inputs: tuple[Any, ...]


@dataclass(slots=True)
class Terms:
    """Parts of row formulas that are the same in every row: each is a cell of its own, by its name.

    `rows` has the operation behind the text of each row formula.
    """

    named: dict[str, str] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    rows: dict[str, Operation] = field(default_factory=dict)

    def name(self, formula: "Formula") -> "Formula":
        """A reference to the cell that holds a formula; equal formulas share it."""
        if formula.text not in self.named:
            name = f"term_{len(self.named) + 1}"
            self.named[formula.text] = name
            self.values[name] = formula.value
        return Formula(self.named[formula.text], formula.value, self, is_atom=True)


class Formula(NDArrayOperatorsMixin):
    """An expression in a spreadsheet's words, with its value now. [of the value]"""

    __slots__ = ("is_atom", "is_row", "terms", "text", "value")

    def __init__(
        self, text: str, value: Number, terms: Terms, *, is_row: bool = False, is_atom: bool = False
    ) -> None:
        self.text = text
        self.value = float(value)
        self.terms = terms
        self.is_row = is_row
        self.is_atom = is_atom

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"{self.text} [{self.value:g}]"

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
        if method != "__call__":
            raise UnknownOperation(f"{ufunc.__name__}.{method}")
        return apply(ufunc, *inputs)

    def __array_function__(self, function: Any, _types: Any, args: Any, _kwargs: Any) -> Any:
        if function is np.where:
            return pick(*args)
        if function is np.clip:
            value, low, high = args
            return np.minimum(np.maximum(value, low), high)
        raise UnknownOperation(function.__name__)


def plain(value: Any) -> Any:
    """A number out of an array of one, a formula as it is."""
    if isinstance(value, np.ndarray):
        if value.size != 1:
            raise UnknownOperation(f"an array of {value.size}")
        return value.ravel()[0] if value.dtype == object else value.ravel()[0].item()
    return value.item() if isinstance(value, np.generic) else value


def value_of(operand: Any) -> float:
    """Today's value of a formula or a number."""
    return operand.value if isinstance(operand, Formula) else float(operand)


def text_of(operand: Any) -> str:
    """A formula's words; a number with all its digits."""
    if isinstance(operand, Formula):
        return operand.text
    if isinstance(operand, bool):
        return "TRUE()" if operand else "FALSE()"
    number = float(operand)
    if isnan(number):
        return "NA()"
    return repr(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


_WORDS: Final[Mapping[Any, str]] = {
    np.add: "({0}+{1})",
    np.subtract: "({0}-{1})",
    np.multiply: "({0}*{1})",
    np.divide: "({0}/{1})",
    np.power: "({0}^{1})",
    np.negative: "(0-{0})",
    np.absolute: "ABS({0})",
    np.maximum: "MAX({0},{1})",
    np.minimum: "MIN({0},{1})",
    np.hypot: "SQRT({0}^2+{1}^2)",
    np.sqrt: "SQRT({0})",
    np.exp: "EXP({0})",
    np.log: "LN({0})",
    np.expm1: "(EXP({0})-1)",
    np.log1p: "LN(1+{0})",
    np.ceil: "ROUNDUP({0},0)",
    np.floor: "ROUNDDOWN({0},0)",
    np.greater: "({0}>{1})",
    np.greater_equal: "({0}>={1})",
    np.less: "({0}<{1})",
    np.less_equal: "({0}<={1})",
    np.bitwise_and: "AND({0},{1})",
    np.logical_and: "AND({0},{1})",
}


def apply(ufunc: Any, *operands: Any) -> Any:
    """One operation, folded where a number makes it trivial."""
    inputs = [plain(operand) for operand in operands]
    if not any(isinstance(one, Formula) for one in inputs):
        return ufunc(*inputs)
    folded = _folded(ufunc, inputs)
    if folded is not None:
        return folded
    if ufunc not in _WORDS:
        raise UnknownOperation(ufunc.__name__)
    with np.errstate(all="ignore"):
        value = ufunc(*(_operand_value(ufunc, one) for one in inputs))
    compute = np.logical_and if ufunc is np.bitwise_and else ufunc
    return _combined(_WORDS[ufunc], compute, inputs, value)


def pick(condition: Any, yes: Any, no: Any) -> Any:
    """A choice; one that is made already is no formula."""
    condition, yes, no = plain(condition), plain(yes), plain(no)
    if not isinstance(condition, Formula):
        return yes if condition else no
    value = value_of(yes if condition else no)
    return _combined("IF({0},{1},{2})", np.where, [condition, yes, no], value)


def _operand_value(ufunc: Any, operand: Any) -> Any:
    logical = ufunc in (np.bitwise_and, np.logical_and)
    return bool(value_of(operand)) if logical else value_of(operand)


def _folded(ufunc: Any, inputs: list[Any]) -> Any | None:
    """Neutral and annihilating numbers leave no trace in a formula."""
    first, second = (inputs[0], inputs[1]) if len(inputs) > 1 else (inputs[0], None)
    rules: Mapping[Any, Callable[[], Any]] = {
        np.multiply: lambda: _product(first, second),
        np.add: lambda: second if _is(first, 0) else first if _is(second, 0) else None,
        np.subtract: lambda: first if _is(second, 0) else None,
        np.divide: lambda: first if _is(second, 1) else 0.0 if _is(first, 0) else None,
        np.bitwise_and: lambda: _both(first, second),
    }
    return rules[ufunc]() if ufunc in rules else None


def _product(first: Any, second: Any) -> Any | None:
    if _is(first, 0) or _is(second, 0):
        return 0.0
    return second if _is(first, 1) else first if _is(second, 1) else None


def _both(first: Any, second: Any) -> Any | None:
    if not isinstance(first, Formula):
        return second if first else False
    if not isinstance(second, Formula):
        return first if second else False
    return None


def _is(operand: Any, number: float) -> bool:
    return not isinstance(operand, Formula) and operand == number


def _combined(words: str, compute: Callable[..., Any], inputs: list[Any], value: Any) -> Formula:
    formulas = [one for one in inputs if isinstance(one, Formula)]
    terms = formulas[0].terms
    is_row = any(one.is_row for one in formulas)
    if is_row:
        inputs = [
            terms.name(one) if isinstance(one, Formula) and not one.is_row and not one.is_atom else one
            for one in inputs
        ]
    text = words.format(*(text_of(one) for one in inputs))
    if is_row:
        terms.rows[text] = Operation(words, compute, tuple(inputs))
    return Formula(text, float(value), terms, is_row=is_row)
