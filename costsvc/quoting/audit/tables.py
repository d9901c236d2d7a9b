"""Sheets of long tables: every evaluation, the attribution, the inputs, the terms, and what they rest on."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from xlsxwriter.utility import xl_col_to_name

from costsvc.quoting.audit.attribution import (
    AXES,
    TOKENS,
    Cell,
    edge_label,
    enough,
    enough_text,
    label_of,
    moved,
)
from costsvc.quoting.audit.frame import Frame
from costsvc.quoting.audit.points import in_row

CLASSES: Final = ("input", "cached_input", "output")
_FIRST_SLOPE: Final = 4
_FIRST_COST: Final = _FIRST_SLOPE + 3 * len(AXES)
_SLOPES: Final = tuple(xl_col_to_name(_FIRST_SLOPE + 3 * axis + 2) for axis in range(len(AXES)))
_SCALE: Final = xl_col_to_name(_FIRST_COST + 2)
_DIFFERENCE: Final = ("up [GPU s]", "down [GPU s]", "slope [GPU s/token]")


def write_points(frame: Frame) -> None:
    """A row per evaluation (several where the concurrency is solved), a column per term."""
    table, sheet = frame.plan.sheet, frame.sheets["Points"]
    letters = {name: xl_col_to_name(index) for index, name in enumerate(table.columns)}
    widths = [26, 9, *[15] * (len(table.columns) - 2)]
    frame.head("Points", 0, table.columns, widths, range(1, len(table.columns)))
    sheet.freeze_panes(1, 2)
    every_row = {name: in_row(text, letters) for name, text in table.templates.items()}
    for number, (values, texts) in enumerate(zip(table.rows, table.texts, strict=True), start=1):
        own = {name: in_row(text, letters) for name, text in texts.items()}
        for index, name in enumerate(table.columns):
            text = own.get(name) or every_row.get(name)
            if name == "point":
                sheet.write_string(number, index, values[name])
            elif text is not None:
                frame.formula("Points", (number, index), text(number + 1), values[name])
            elif name in values:
                sheet.write_number(number, index, values[name])


def write_attribution(frame: Frame) -> dict[str, float]:
    """A row per cell of the ray, and the raw prices as sums over them. Their names are `raw_input` and so on.

    Returns
    -------
    dict
        Raw price of each class. [accelerator-second/token]
    """
    frame.sheets["Attribution"].freeze_panes(1, 1)
    names = ["cell", "start", "end", "place on the ray"]
    names += [f"{axis} {what}" for axis in AXES for what in _DIFFERENCE]
    names += ["cost at the start [GPU s]", "cost at the end [GPU s]", "scale [1]"]
    frame.head("Attribution", 0, names, [42, *[16] * (len(names) - 1)], range(1, len(names)))
    cells = frame.plan.cells
    bills = [_cell(frame, number, cell) for number, cell in enumerate(cells, start=1)]
    last, raw = len(cells) + 1, {}
    for axis, name in enumerate(CLASSES):
        row, slope = last + 1 + axis, _SLOPES[axis]
        frame.sheets["Attribution"].write_string(
            row, 0, f"raw price of {name} [GPU s/token]", frame.formats["head"]
        )
        widths = f"($C$2:$C${last}-$B$2:$B${last})"
        text = f"SUMPRODUCT({widths}*${_SCALE}$2:${_SCALE}${last}*${slope}$2:${slope}${last})"
        raw[name] = sum(bill[axis] for bill in bills)
        frame.formula("Attribution", (row, 1), text, raw[name], "number")
        frame.define(f"raw_{name}", "Attribution", row, 1)
    return raw


def _cell(frame: Frame, number: int, cell: Cell) -> tuple[float, ...]:
    """A row; the part of the raw price of each axis that it gives. [accelerator-second/token]"""
    row, tokens = number, frame.plan.tokens
    for column, value in enumerate((number, cell.start, cell.end, cell.place)):
        frame.sheets["Attribution"].write_number(row, column, value)
    slopes = [_slope(frame, row, cell, axis) for axis in range(len(AXES))]
    width, scale, text = cell.end - cell.start, 1.0, "1"
    if cell.is_scaled:
        (first, low), (last, high) = (_edge(frame, edge) for edge in (cell.start, cell.end))
        frame.formula("Attribution", (row, _FIRST_COST), first, low, "number")
        frame.formula("Attribution", (row, _FIRST_COST + 1), last, high, "number")
        attributed = width * float(np.dot(slopes, tokens))
        at = row + 1
        growth = f"${xl_col_to_name(_FIRST_COST + 1)}{at}-${xl_col_to_name(_FIRST_COST)}{at}"
        sold = "+".join(f"${slope}{at}*{token}" for slope, token in zip(_SLOPES, TOKENS, strict=True))
        whole = f"($C{at}-$B{at})*({sold})"
        text = f"IF(AND({growth}>0,{whole}>0),({growth})/({whole}),1)"
        scale = (high - low) / attributed if high > low and attributed > 0 else 1.0
    frame.formula("Attribution", (row, _FIRST_COST + 2), text, scale)
    return tuple(width * scale * slope for slope in slopes)


def _slope(frame: Frame, row: int, cell: Cell, axis: int) -> float:
    """The costs beside a place and their slope. [accelerator-second/token]"""
    column, tokens = _FIRST_SLOPE + 3 * axis, frame.plan.tokens
    up, down = (frame.cost_of(label_of(cell.place, axis, side)) for side in (True, False))
    frame.formula("Attribution", (row, column), up[0], up[1], "number")
    frame.formula("Attribution", (row, column + 1), down[0], down[1], "number")
    letters = [xl_col_to_name(column + offset) for offset in range(2)]
    difference = f"(${letters[0]}{row + 1}-${letters[1]}{row + 1})"
    text = f"{difference}/($D{row + 1}*moved_{AXES[axis]}*IF({enough_text(axis)},2,1))"
    slope = (up[1] - down[1]) / (cell.place * moved(tokens, axis) * (2.0 if enough(tokens, axis) else 1.0))
    frame.formula("Attribution", (row, column + 2), text, slope, "number")
    return slope


def _edge(frame: Frame, edge: float) -> tuple[str, float]:
    """Where the cost of a share of the request stands, and the cost; nothing costs nothing."""
    return frame.cost_of(edge_label(edge)) if edge else ("0", 0.0)


def write_inputs(frame: Frame) -> None:
    """Every named number, with its unit and where it comes from."""
    frame.head("Inputs", 0, ("name", "value", "unit", "kind", "source"), (38, 24, 13, 13, 90), (1,))
    sheet = frame.sheets["Inputs"]
    sheet.freeze_panes(1, 0)
    for row, one in enumerate(frame.live.inputs.listed, start=1):
        form = frame.formats["live" if one.kind == "live" else "readable"]
        sheet.write_string(row, 0, one.name, frame.formats["top"])
        sheet.write_number(row, 1, one.value, form)
        frame.texts("Inputs", row, 2, (one.unit, one.kind, one.source), (13, 13, 90))
        frame.define(one.name, "Inputs", row, 1)


def write_terms(frame: Frame) -> None:
    """Parts of the formulas that are the same in every row."""
    frame.head("Terms", 0, ("name", "value", "formula"), (26, 24, 120), (1,))
    for row, (text, name) in enumerate(frame.live.inputs.terms.named.items(), start=1):
        frame.sheets["Terms"].write_string(row, 0, name, frame.formats["top"])
        frame.formula("Terms", (row, 1), text, frame.live.inputs.terms.values[name], "readable")
        frame.texts("Terms", row, 2, (text,), (120,))
        frame.define(name, "Terms", row, 1)


def write_records(
    frame: Frame, sheet: str, records: list[Mapping[str, Any]], widths: Mapping[str, float]
) -> None:
    """Records of the answer, a row each, all as text."""
    frame.head(sheet, 0, list(widths), list(widths.values()))
    for row, record in enumerate(records, start=1):
        values = [record.get(name) for name in widths]
        texts = [
            "; ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
            for value in values
        ]
        frame.texts(sheet, row, 0, texts, list(widths.values()))
