"""Recording of formulas: while they run on symbols, what they do goes onto a tape.

A search asks the same formulas of the same layouts again and again, at some hundred points each time. There the call of
a NumPy function costs ten times its arithmetic, and all that follows from layouts alone would be computed anew.
A `Symbol` stands where a formula expects an array, so what is recorded is the formula itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from costsvc.engine.tape import FUNCTIONS, Array, Tape

_CODES: Final = {name: code for code, name in enumerate(FUNCTIONS)}
_INPUT, _CONSTANT = -2, -1


class NotRecordable(TypeError):
    """A formula did what no tape can play."""


class Symbol(NDArrayOperatorsMixin):
    """A number that differs from point to point: what NumPy's functions make of it is recorded."""

    __slots__ = ("place", "recorder")

    def __init__(self, recorder: "Recorder", place: int) -> None:
        self.recorder = recorder
        self.place = place

    def __bool__(self) -> bool:
        raise NotRecordable("a Python `if` on what differs from point to point")

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **named: Any) -> Any:
        """Record an elementwise function."""
        if method != "__call__" or named:
            raise NotRecordable(f"{function.__name__}.{method} with {sorted(named)}")
        return self.recorder.apply(function.__name__, inputs)

    def __array_function__(self, function: Any, types: Any, inputs: Any, named: Any) -> Any:
        """Record `where`, which is none of NumPy's elementwise functions by its own account."""
        if function is not np.where or named:
            raise NotRecordable(function.__name__)
        return self.recorder.apply("where", inputs)


class Recorder:
    """Records what is done to symbols, equal work once, and nothing that follows from the layouts alone.

    Parameters
    ----------
    inputs, layouts : int
        How many inputs a point has, and the length of the columns that formulas bring along.
    """

    def __init__(self, inputs: int, layouts: int) -> None:
        self._layouts = layouts
        self._made: list[tuple[Any, ...]] = [(_INPUT, place) for place in range(inputs)]
        self._known: dict[tuple[Any, ...], int] = {}
        self.symbols = [Symbol(self, place) for place in range(inputs)]

    def apply(self, name: str, operands: Sequence[Any]) -> Any:
        """What a function makes of operands, of which one is a symbol at least.

        Raises
        ------
        NotRecordable
            No tape can play it.
        """
        if name in _IN_OTHER_WORDS:
            return _IN_OTHER_WORDS[name](*operands)
        if name not in _CODES:
            raise NotRecordable(name)
        plain = [one if isinstance(one, Symbol) else _plain(one) for one in operands]
        simple = _simplified(name, *plain)
        if simple is not None:
            return simple
        return self._symbol((_CODES[name], *[self._place(one) for one in plain]))

    def tape(self, row: Iterable[Any]) -> Tape:
        """The tape that makes rows of symbols and of what follows from the layouts."""
        values = list(row)
        rows = np.zeros((self._layouts, len(values)))
        wanted = []
        for place, value in enumerate(values):
            if isinstance(value, Symbol):
                wanted.append((value.place, place))
            else:
                rows[:, place] = _plain(value)
        return _assembled(self._made, wanted, rows)

    def _place(self, operand: Any) -> int:
        if isinstance(operand, Symbol):
            return operand.place
        of_layouts = np.full(self._layouts, operand) if isinstance(operand, float) else operand
        return self._symbol((_CONSTANT, of_layouts.tobytes())).place

    def _symbol(self, made: tuple[Any, ...]) -> Symbol:
        if made not in self._known:
            self._known[made] = len(self._made)
            self._made.append(made)
        return Symbol(self, self._known[made])


def _power(base: Any, exponent: Any) -> Any:
    if not isinstance(exponent, int) or exponent < 1:
        raise NotRecordable(f"a power of {exponent}")
    return prod([base] * exponent)


_IN_OTHER_WORDS: Final[Mapping[str, Callable[..., Any]]] = {
    "less": lambda first, second: np.greater(second, first),
    "less_equal": lambda first, second: 1.0 - np.greater(first, second),
    "greater_equal": lambda first, second: 1.0 - np.greater(second, first),
    "negative": lambda value: -1.0 * value,
    "power": _power,
}


def _plain(value: Any) -> Any:
    """A number for each layout, or one where all are alike."""
    if not isinstance(value, np.ndarray):
        return float(value)
    column = value.ravel().astype(np.float64)
    return float(column[0]) if (column == column[0]).all() else column


def _simplified(name: str, first: Any, second: Any = None, *_: Any) -> Any | None:
    """The operand or number that a function of a symbol comes to, None where it is more than that."""
    if name == "multiply":
        if _is(first, 0.0) or _is(second, 0.0):
            return 0.0
        return second if _is(first, 1.0) else first if _is(second, 1.0) else None
    if name == "add":
        return second if _is(first, 0.0) else first if _is(second, 0.0) else None
    if name == "subtract":
        return first if _is(second, 0.0) else None
    if name == "divide":
        return first if _is(second, 1.0) else 0.0 if _is(first, 0.0) else None
    return None


def _is(operand: Any, number: float) -> bool:
    return isinstance(operand, float) and operand == number


def _assembled(made: Sequence[tuple[Any, ...]], wanted: Sequence[tuple[int, int]], rows: Array) -> Tape:
    """A tape of what the wanted results need, where a register is free again after its last use."""
    last: dict[int, int] = dict.fromkeys((place for place, _ in wanted), len(made))
    for place in reversed(range(len(made))):
        code, *operands = made[place]
        if place in last and code >= 0:
            for operand in operands:
                last.setdefault(operand, place)
    register = {place: place for place, (code, *_) in enumerate(made) if code == _INPUT}
    columns = [place for place in sorted(last) if made[place][0] == _CONSTANT]
    register |= {place: len(register) + at for at, place in enumerate(columns)}
    free, used, operations = list[int](), len(register), list[tuple[int, ...]]()
    for place in sorted(last):
        code, *operands = made[place]
        if code < 0:
            continue
        if not free:
            free, used = [used], used + 1
        register[place] = free.pop()
        operations.append((code, register[place], *[register[one] for one in (operands * 3)[:3]]))
        free += [register[one] for one in set(operands) if last[one] == place and made[one][0] >= 0]
    return Tape(
        operations=np.asarray(operations, dtype=np.int64).reshape(-1, 5),
        constants=np.asarray([np.frombuffer(made[place][1]) for place in columns]).reshape(-1, len(rows)),
        outputs=np.asarray([(register[place], to) for place, to in wanted], dtype=np.int64).reshape(-1, 2),
        rows=rows,
        registers=used,
    )
