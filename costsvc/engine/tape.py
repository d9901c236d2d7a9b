"""A tape of formulas: what was recorded of them, played at many points as machine code; see `engine.recording`."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.compiling import compiled

Array = NDArray[np.float64]
Operations = NDArray[np.int64]

BLOCK: Final = 128
"""Points that are played together, so that their registers stay in the nearest cache."""
FUNCTIONS: Final = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "minimum",
    "maximum",
    "greater",
    "where",
    "sqrt",
    "floor",
    "exp",
    "log1p",
)
_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _MINIMUM, _MAXIMUM, _GREATER, _WHERE, _SQRT, _FLOOR, _EXP, _LOG1P = (
    range(12)
)


class Tape(NamedTuple):
    """What was recorded, ready to be played.

    Registers are numbered: first the inputs, then `constants`, then results, whose registers are used again once
    nothing needs them.

    Parameters
    ----------
    operations : (operations, 5) array
        Code, register of the result, and those of three operands; what takes fewer ignores the rest.
    constants : (constants, layouts) array
        Numbers that follow from the layouts alone.
    outputs : (outputs, 2) array
        Registers of which rows consist, and their places in a row.
    rows : (layouts, numbers) array
        Rows with what follows from the layouts alone.
    """

    operations: Operations
    constants: Array
    outputs: NDArray[np.int64]
    rows: Array
    registers: int

    def some(self, layouts: list[int]) -> "Tape":
        """The tape of some layouts."""
        constants = np.ascontiguousarray(self.constants[:, layouts])
        return self._replace(constants=constants, rows=self.rows[layouts])

    def play(self, inputs: Array) -> Array:
        """The rows at given inputs, (inputs, layouts, points). (layouts, points, numbers)"""
        rows = np.empty((*inputs.shape[1:], self.rows.shape[1]))
        _play(
            self.operations,
            self.constants,
            self.outputs,
            self.rows,
            self.registers,
            np.ascontiguousarray(inputs),
            rows,
        )
        return rows


@compiled
def _calculate(at: Array, many: int, code: int, to: int, a: int, b: int) -> None:
    if code == _ADD:
        for i in range(many):
            at[to, i] = at[a, i] + at[b, i]
    elif code == _SUBTRACT:
        for i in range(many):
            at[to, i] = at[a, i] - at[b, i]
    elif code == _MULTIPLY:
        for i in range(many):
            at[to, i] = at[a, i] * at[b, i]
    else:
        for i in range(many):
            at[to, i] = at[a, i] / at[b, i]


@compiled
def _choose(at: Array, many: int, code: int, to: int, a: int, b: int, c: int) -> None:
    if code == _MINIMUM:
        for i in range(many):
            at[to, i] = np.minimum(at[a, i], at[b, i])
    elif code == _MAXIMUM:
        for i in range(many):
            at[to, i] = np.maximum(at[a, i], at[b, i])
    elif code == _GREATER:
        for i in range(many):
            at[to, i] = at[a, i] > at[b, i]
    else:
        for i in range(many):
            at[to, i] = at[b, i] if at[a, i] != 0.0 else at[c, i]


@compiled
def _apply(at: Array, many: int, code: int, to: int, a: int) -> None:
    if code == _SQRT:
        for i in range(many):
            at[to, i] = np.sqrt(at[a, i])
    elif code == _FLOOR:
        for i in range(many):
            at[to, i] = np.floor(at[a, i])
    elif code == _EXP:
        for i in range(many):
            at[to, i] = np.exp(at[a, i])
    else:
        for i in range(many):
            at[to, i] = np.log1p(at[a, i])


@compiled
def _load(at: Array, start: int, many: int, inputs: Array, constants: Array) -> None:
    """The inputs of some points, and the numbers of their layouts."""
    kinds, _, points = inputs.shape
    for i in range(many):
        layout, point = (start + i) // points, (start + i) % points
        for one in range(kinds):
            at[one, i] = inputs[one, layout, point]
        for one in range(constants.shape[0]):
            at[kinds + one, i] = constants[one, layout]


@compiled
def _run(at: Array, many: int, operations: Operations) -> None:
    for one in range(operations.shape[0]):
        code, to, a, b, c = operations[one]
        if code <= _DIVIDE:
            _calculate(at, many, code, to, a, b)
        elif code <= _WHERE:
            _choose(at, many, code, to, a, b, c)
        else:
            _apply(at, many, code, to, a)


@compiled
def _play(
    operations: Operations,
    constants: Array,
    outputs: NDArray[np.int64],
    alike: Array,
    registers: int,
    inputs: Array,
    rows: Array,
) -> None:
    """Write rows, some points at a time."""
    _, layouts, points = inputs.shape
    at = np.empty((registers, BLOCK))
    for start in range(0, layouts * points, BLOCK):
        many = min(BLOCK, layouts * points - start)
        _load(at, start, many, inputs, constants)
        _run(at, many, operations)
        for i in range(many):
            layout, point = (start + i) // points, (start + i) % points
            for one in range(alike.shape[1]):
                rows[layout, point, one] = alike[layout, one]
            for one in range(outputs.shape[0]):
                rows[layout, point, outputs[one, 1]] = at[outputs[one, 0], i]


def make_ready() -> None:
    """Compile, or fetch what was compiled before, so that no request has to wait for it."""
    nothing = np.zeros((0, 5), dtype=np.int64), np.zeros((0, 1)), np.zeros((0, 2), dtype=np.int64)
    Tape(*nothing, rows=np.ones((1, 1)), registers=1).play(np.ones((1, 1, 1)))
