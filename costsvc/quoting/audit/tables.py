"""Sheets of long tables: every evaluation, the attribution, the inputs, the terms, and what they rest on."""

from collections.abc import Mapping
from itertools import product
from typing import Any, Final

from xlsxwriter.utility import xl_col_to_name

from costsvc.engine.pricing import CELLS
from costsvc.quoting.audit.attribution import AXES, TOKENS, cell_bill, cell_cost, corner_of, label_of, moved
from costsvc.quoting.audit.frame import Frame
from costsvc.quoting.audit.points import cell_text

CLASSES: Final = ("input", "cached_input", "output")


def write_points(frame: Frame) -> None:
    """A row per evaluation (several where the concurrency is solved), a column per term."""
    table, sheet = frame.plan.sheet, frame.sheets["Points"]
    letters = {name: xl_col_to_name(index) for index, name in enumerate(table.columns)}
    frame.head("Points", 0, table.columns, [26, 9, *[13] * (len(table.columns) - 2)])
    sheet.freeze_panes(1, 2)
    for number, (values, texts) in enumerate(zip(table.rows, table.texts, strict=True), start=1):
        for index, name in enumerate(table.columns):
            if name == "point":
                sheet.write_string(number, index, values[name])
            elif name not in texts:
                if name in values:
                    sheet.write_number(number, index, values[name])
            else:
                frame.formula(
                    "Points", (number, index), cell_text(texts[name], letters, number + 1), values[name]
                )


def write_attribution(frame: Frame) -> dict[str, float]:
    """The raw prices as sums over the rays and cells. Their names are `raw_input` and so on.

    Returns
    -------
    dict
        Raw price of each class. [accelerator-second/token]
    """
    frame.sheets["Attribution"].freeze_panes(1, 0)
    by_node = _nodes(frame)
    by_cell = _cells(frame) if frame.plan.has_cells else {}
    start = 2 + len(frame.plan.nodes) + (CELLS + 2 if frame.plan.has_cells else 0)
    raw = {}
    for axis, name in enumerate(CLASSES):
        text, value = by_node[axis] if axis in frame.plan.node_axes else by_cell[axis]
        row = start + axis
        frame.sheets["Attribution"].write_string(
            row, 0, f"raw price of {name} [GPU s/token]", frame.formats["head"]
        )
        frame.formula("Attribution", (row, 1), text, value, "number")
        frame.define(f"raw_{name}", "Attribution", row, 1)
        raw[name] = value
    return raw


def _nodes(frame: Frame) -> dict[int, tuple[str, float]]:
    plan, count = frame.plan, len(frame.plan.nodes)
    names = ["node", "place on the ray", "weight"]
    names += [f"{AXES[axis]} {what}" for axis in plan.node_axes for what in ("up", "down", "slope")]
    frame.head("Attribution", 0, names, [30, 16, 12, *[15] * (len(names) - 3)])
    totals = dict.fromkeys(plan.node_axes, 0.0)
    for index, node in enumerate(plan.nodes):
        row, sheet = index + 1, frame.sheets["Attribution"]
        sheet.write_number(row, 0, index + 1)
        sheet.write_number(row, 1, node.place)
        sheet.write_number(row, 2, node.weight)
        for order, axis in enumerate(plan.node_axes):
            column = 3 + 3 * order
            up, down = (frame.cost_of(label_of(index, axis, side)) for side in (True, False))
            slope = (up[1] - down[1]) / _width(frame, node.place, axis)
            letters = [xl_col_to_name(column + offset) for offset in range(2)]
            frame.formula("Attribution", (row, column), up[0], up[1], "number")
            frame.formula("Attribution", (row, column + 1), down[0], down[1], "number")
            text = (
                f"(${letters[0]}{row + 1}-${letters[1]}{row + 1})"
                f"/($B{row + 1}*moved_{AXES[axis]}*IF({TOKENS[axis]}>0,2,1))"
            )
            frame.formula("Attribution", (row, column + 2), text, slope, "number")
            totals[axis] += node.weight * slope
    found = {}
    for order, axis in enumerate(plan.node_axes):
        letter = xl_col_to_name(5 + 3 * order)
        found[axis] = (f"SUMPRODUCT($C$2:$C${count + 1},${letter}$2:${letter}${count + 1})", totals[axis])
    return found


def _width(frame: Frame, place: float, axis: int) -> float:
    tokens = frame.plan.tokens
    return place * moved(tokens, axis) * (2.0 if tokens[axis] > 0 else 1.0)


def _cells(frame: Frame) -> dict[int, tuple[str, float]]:
    """Bills of the cells; their sum over an axis' tokens is its price."""
    start = len(frame.plan.nodes) + 3
    sheet = frame.sheets["Attribution"]
    for column, name in enumerate(("cell", *(f"bill of {axis}" for axis in AXES))):
        sheet.write_string(start - 1, column, name, frame.formats["head"])
    totals = dict.fromkeys(range(len(AXES)), 0.0)
    for cell in range(CELLS):
        row = start + cell
        sheet.write_number(row, 0, cell + 1)
        corners = {corner: frame.cost_of(corner_of(cell, corner)) for corner in product((0, 1), repeat=3)}
        texts = {corner: text for corner, (text, _) in corners.items()}
        for axis in range(len(AXES)):
            bill = cell_cost({corner: cost for corner, (_, cost) in corners.items()}, axis)
            frame.formula("Attribution", (row, 1 + axis), cell_bill(texts, axis), bill, "number")
            totals[axis] += bill
    found = {}
    for axis, total in totals.items():
        letter = xl_col_to_name(1 + axis)
        text = f"SUM(${letter}${start + 1}:${letter}${start + CELLS})/IF({TOKENS[axis]}>0,{TOKENS[axis]},1)"
        found[axis] = (text, total / (frame.plan.tokens[axis] or 1.0))
    return found


def write_inputs(frame: Frame) -> None:
    """Every named number, with its unit and where it comes from."""
    frame.head("Inputs", 0, ("name", "value", "unit", "kind", "source"), (38, 20, 12, 13, 80))
    sheet = frame.sheets["Inputs"]
    sheet.freeze_panes(1, 0)
    for row, one in enumerate(frame.live.inputs.listed, start=1):
        form = frame.formats["live" if one.kind == "live" else "plain"]
        sheet.write_string(row, 0, one.name)
        sheet.write_number(row, 1, one.value, form)
        for column, text in enumerate((one.unit, one.kind, one.source), start=2):
            sheet.write_string(row, column, text, frame.formats["unit"])
        frame.define(one.name, "Inputs", row, 1)


def write_terms(frame: Frame) -> None:
    """Parts of the formulas that are the same in every row."""
    frame.head("Terms", 0, ("name", "value", "formula"), (26, 20, 110))
    for row, (text, name) in enumerate(frame.live.inputs.terms.named.items(), start=1):
        frame.sheets["Terms"].write_string(row, 0, name)
        frame.formula("Terms", (row, 1), text, frame.live.inputs.terms.values[name])
        frame.sheets["Terms"].write_string(row, 2, text)
        frame.define(name, "Terms", row, 1)


def write_records(
    frame: Frame, sheet: str, records: list[Mapping[str, Any]], widths: tuple[float, ...]
) -> None:
    """Records of the answer, a row each, all as text."""
    names = list(dict.fromkeys(name for record in records for name in record))
    frame.head(sheet, 0, names, [widths[min(index, len(widths) - 1)] for index in range(len(names))])
    for row, record in enumerate(records, start=1):
        for column, name in enumerate(names):
            value = record.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                frame.sheets[sheet].write_number(row, column, value)
            elif value is not None:
                text = "; ".join(map(str, value)) if isinstance(value, list) else str(value)
                frame.sheets[sheet].write_string(row, column, text)
