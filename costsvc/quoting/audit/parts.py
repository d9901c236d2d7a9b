"""Parts of row formulas that several of them need: each becomes a column, so that every formula stays short.

The engine's functions use an intermediate as often as they like; written out as text it would be repeated each
time, and Excel opens no workbook with a formula of more than 8,192 characters.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from costsvc.quoting.audit.record import Formula, Terms, text_of, value_of

Array = NDArray[np.float64]

WORTH_A_CELL: Final = 120
"""Characters that a column has to save in the others. [characters]"""


def shared_parts(templates: Mapping[str, str], terms: Terms) -> list[str]:
    """Texts of the operations that more than one formula needs, those that others are made of first."""
    uses: Counter[str] = Counter()
    order: dict[str, None] = {}

    def visit(text: str) -> None:
        if text in order:
            return
        for one in terms.rows[text].inputs:
            if isinstance(one, Formula) and one.text in terms.rows:
                uses[one.text] += 1
                visit(one.text)
        order[text] = None

    columns = {text for text in templates.values() if text in terms.rows}
    for text in columns:
        visit(text)
    return [
        text
        for text in order
        if text not in columns and uses[text] > 1 and (uses[text] - 1) * len(text) > WORTH_A_CELL
    ]


def shortened(templates: Mapping[str, str], parts: Mapping[str, str], terms: Terms) -> dict[str, str]:
    """All columns, those of the parts last, each in terms of the others.

    Parameters
    ----------
    parts : mapping
        Name of each part's column → its text.
    """
    names: dict[str, str] = {}
    for name, text in (*templates.items(), *parts.items()):
        if text in terms.rows:
            names.setdefault(text, name)

    def inside(operand: Any) -> str:
        text = text_of(operand)
        return f"[{names[text]}]" if text in names else whole(text)

    def whole(text: str) -> str:
        operation = terms.rows.get(text)
        return text if operation is None else operation.words.format(*map(inside, operation.inputs))

    return {
        name: whole(text) if names.get(text, name) == name else f"[{names[text]}]"
        for name, text in (*templates.items(), *parts.items())
    }


def part_values(texts: list[str], columns: Mapping[str, Array], terms: Terms) -> list[Array]:
    """The value of each text in every row, from the columns that it refers to."""
    known: dict[str, Any] = {f"[{name}]": values for name, values in columns.items()}

    def value(operand: Any) -> Any:
        if not isinstance(operand, Formula):
            return operand
        if operand.text not in known:
            known[operand.text] = _computed(operand, value, terms)
        return known[operand.text]

    with np.errstate(all="ignore"):
        found = [known[text] if text in known else _of(text, value, terms) for text in texts]
    rows = next(iter(columns.values())).shape
    return [np.broadcast_to(np.asarray(one, dtype=np.float64), rows) for one in found]


def _computed(formula: Formula, value: Callable[[Any], Any], terms: Terms) -> Any:
    return _of(formula.text, value, terms) if formula.text in terms.rows else value_of(formula)


def _of(text: str, value: Callable[[Any], Any], terms: Terms) -> Any:
    operation = terms.rows[text]
    return operation.compute(*map(value, operation.inputs))
