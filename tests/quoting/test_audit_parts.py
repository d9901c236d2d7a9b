"""Formulas of the audit workbook stay within what Excel opens, and their shared parts have columns of their own."""

import io
import re
import zipfile
from html import unescape
from typing import Any

import numpy as np
import pytest

from costsvc.db.snapshot import Catalog
from costsvc.quoting.audit.parts import part_values, shared_parts, shortened
from costsvc.quoting.audit.points import in_row
from costsvc.quoting.audit.record import Formula, Terms
from costsvc.quoting.audit.workbook import audit_workbook
from costsvc.quoting.request import parse_request
from tests.api.conftest import TODAY

# "Excel specifications and limits": length of a formula, and levels of nested functions.
LONGEST_FORMULA = 8192
DEEPEST_NESTING = 64


def formulas_of(workbook: bytes) -> set[str]:
    with zipfile.ZipFile(io.BytesIO(workbook)) as parts:
        sheets = [parts.read(name).decode() for name in parts.namelist() if "/worksheets/sheet" in name]
    return {unescape(text) for sheet in sheets for text in re.findall(r"<f>([^<]*)</f>", sheet)}


def depth(formula: str) -> int:
    deepest = now = 0
    for character in formula:
        now += {"(": 1, ")": -1}.get(character, 0)
        deepest = max(deepest, now)
    return deepest


@pytest.mark.parametrize("model", ["llama-3-8b", "deepseek-v4-pro", "llama-4-scout"])
def test_excel_opens_every_formula(catalog: Catalog, model: str) -> None:
    asked = {"model": model, "gpu": "b200", "ctx": 2048, "slo": "batch"}
    formulas = formulas_of(audit_workbook(catalog, parse_request(asked), TODAY))
    assert len(formulas) > 1000
    assert max(map(len, formulas)) <= LONGEST_FORMULA
    assert max(map(depth, formulas)) <= DEEPEST_NESTING


def recorded(terms: Terms) -> dict[str, Any]:
    """Two columns that both need a long part, and the second also the first."""
    one, other = (
        Formula(f"[{name}]", value, terms, is_row=True, is_atom=True)
        for name, value in (("one", 2.0), ("other", 5.0))
    )
    long = np.maximum(one * other + one / other, one * 3.0 + other**2.0 + np.sqrt(other * 7.0)) + one * 11.0
    first = long * 2.0 + long
    return {"long": long, "first": first, "second": np.where(first > 1.0, first - long / 3.0, long)}


def test_a_part_that_several_columns_need_is_written_once() -> None:
    terms = Terms()
    made = recorded(terms)
    templates = {name: made[name].text for name in ("first", "second")}
    (text,) = shared_parts(templates, terms)
    assert text == made["long"].text
    short = shortened(templates, {"part": text}, terms)
    assert short == {
        "first": "(([part]*2)+[part])",
        "second": "IF(([first]>1),([first]-([part]/3)),[part])",
        "part": text,
    }


def test_a_parts_values_are_those_of_its_formula() -> None:
    terms = Terms()
    made = recorded(terms)
    columns = {"one": np.asarray([2.0, 3.0]), "other": np.asarray([5.0, 0.5])}
    (long,) = part_values([made["long"].text], columns, terms)
    one, other = columns.values()
    expected = np.maximum(one * other + one / other, one * 3 + other**2 + np.sqrt(other * 7)) + one * 11
    assert long == pytest.approx(expected)
    assert long[0] == pytest.approx(made["long"].value)


def test_a_template_is_placed_in_its_row() -> None:
    letters = {"one": "C", "other": "AB"}
    assert in_row("[one]*([other]-[one])", letters)(7) == "$C7*($AB7-$C7)"
    assert in_row("[one@-2]+[one]/term_1", letters)(7) == "$C5+$C7/term_1"
    assert in_row("42", letters)(7) == "42"
