"""What the sheets of a workbook share: formats, names, and how a formula with its value is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final, Literal

from xlsxwriter.format import Format
from xlsxwriter.utility import xl_col_to_name
from xlsxwriter.workbook import Workbook
from xlsxwriter.worksheet import CellFormulaTuple, Worksheet

from costsvc.engine.uncertainty import ErrorBand
from costsvc.quoting.audit.live import Live
from costsvc.quoting.audit.plan import Plan

SHEETS: Final = ("Quote", "Inputs", "Terms", "Attribution", "Points", "Sensitivity", "Band", "Sources")


_LINE_POINTS: Final = 15
READABLE: Final = "[>=10000]#,##0;[=0]0;General"
"""Thousands apart in what is large; a share or a second keeps its digits."""


class PlainSheet(Worksheet):  # type: ignore[misc]
    """A worksheet whose formulas use no function newer than 2007.

    The library looks for some hundred newer ones in each formula, which takes most of the time of a workbook
    of tens of thousands.
    """

    def _write_formula(
        self, row: int, col: int, formula: str, cell_format: Format | None = None, value: Any = 0
    ) -> Literal[0, -1]:
        if self._check_dimensions(row, col):
            raise IndexError(f"row {row}, column {col} is outside a sheet")
        self.table[row][col] = CellFormulaTuple(formula.removeprefix("="), cell_format, value)
        return 0


@dataclass(slots=True)
class Frame:
    """A workbook in the making."""

    book: Workbook
    answer: Mapping[str, Any]
    live: Live
    plan: Plan
    band: ErrorBand
    formats: dict[str, Any] = field(default_factory=dict)
    sheets: dict[str, Worksheet] = field(default_factory=dict)

    def __post_init__(self) -> None:
        add = self.book.add_format
        self.formats = {
            "head": add({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"}),
            "title": add({"bold": True, "font_size": 14}),
            "head_right": add(
                {"bold": True, "bottom": 1, "text_wrap": True, "valign": "top", "align": "right"}
            ),
            "live": add({"bg_color": "#FFF2CC", "border": 1, "num_format": READABLE, "valign": "top"}),
            "live_share": add({"bg_color": "#FFF2CC", "border": 1, "num_format": "0%"}),
            "money": add({"num_format": "0.000000"}),
            "price": add({"num_format": "0.000000", "bold": True}),
            "readable": add({"num_format": READABLE, "valign": "top"}),
            "top": add({"valign": "top"}),
            "right": add({"align": "right"}),
            "text": add({"text_wrap": True, "valign": "top", "align": "left", "indent": 1}),
            "whole": add({"num_format": "#,##0"}),
            "number": add({"num_format": "0.000000E+00"}),
            "wrap": add({"text_wrap": True, "valign": "top"}),
            "unit": add({"align": "left", "indent": 1}),
            "plain": add({}),
        }
        self.sheets = {name: self.book.add_worksheet(name, worksheet_class=PlainSheet) for name in SHEETS}
        for sheet in self.sheets.values():
            sheet.set_landscape()
            sheet.fit_to_pages(1, 0)

    def define(self, name: str, sheet: str, row: int, column: int) -> None:
        """Name a cell, counted from 0."""
        self.book.define_name(name, f"={sheet}!${xl_col_to_name(column)}${row + 1}")

    def formula(self, sheet: str, at: tuple[int, int], text: str, value: Any, form: str = "plain") -> None:
        """A formula and what it shows before anybody recalculates it."""
        self.sheets[sheet].write_formula(*at, f"={text}", self.formats[form], value)

    def head(
        self, sheet: str, row: int, names: Sequence[str], widths: Sequence[float], numbers: Sequence[int] = ()
    ) -> None:
        """A line of column names; those of `numbers` stand at the right, as what is below them."""
        for column, (name, width) in enumerate(zip(names, widths, strict=True)):
            form = self.formats["head_right" if column in numbers else "head"]
            self.sheets[sheet].write_string(row, column, name, form)
            self.sheets[sheet].set_column(column, column, width)

    def texts(self, sheet: str, row: int, first: int, texts: Sequence[str], widths: Sequence[float]) -> None:
        """Texts side by side from a column on, in a row as high as the longest needs."""
        for column, text in enumerate(texts, start=first):
            self.sheets[sheet].write_string(row, column, text, self.formats["text"])
        # An indented cell holds some characters less than it is wide.
        lines = max(ceil(len(text) / (width - 3)) for text, width in zip(texts, widths, strict=True))
        self.sheets[sheet].set_row(row, _LINE_POINTS * max(lines, 1))

    def cost_of(self, label: str) -> tuple[str, float]:
        """Where a point's cost stands, and the cost. [accelerator-second]"""
        row = self.plan.sheet.result_row[label]
        return self.reference(label, "cost_gpu_s"), self.plan.sheet.rows[row]["cost_gpu_s"]

    def reference(self, label: str, column: str) -> str:
        """A column of a point's last row."""
        letter = xl_col_to_name(self.plan.sheet.columns.index(column))
        return f"Points!${letter}${self.plan.sheet.result_row[label] + 2}"

    def value(self, label: str, column: str) -> float:
        """The value there."""
        return float(self.plan.sheet.rows[self.plan.sheet.result_row[label]][column])
