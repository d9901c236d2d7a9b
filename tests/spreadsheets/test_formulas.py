"""What a finance person types into LibreOffice gives the service's numbers, in English and in German."""

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from costsvc.quoting.tables.template import reason_formula, value_formula
from tests.spreadsheets.conftest import Office

ASKED = "model=llama-3-70b&gpu=h100&ctx=8192"
LOCALES = pytest.mark.parametrize("locale", ["en-US", "de-DE"])
NEW = "private:factory/scalc"


def typed(office: Office, *formulas: str) -> list[dict[str, Any]]:
    (cells,) = office([{"open": NEW, "formulas": list(formulas)}])
    return list(cells)


def price(address: str, kind: str, more: str = "") -> float:
    answer = httpx.get(f"{address}/quote?{ASKED}{more}", timeout=30).json()
    return float(answer["prices"][kind]["usd_per_mtok"])


@LOCALES
def test_a_single_value_is_a_number_in_every_locale(
    office_in: Callable[[str], Office], address: str, locale: str
) -> None:
    url = f"{address}/quote.txt?{ASKED}&field=output"
    number, missing = typed(
        office_in(locale),
        f'=NUMBERVALUE(WEBSERVICE("{url}");".")',
        f'=NUMBERVALUE(WEBSERVICE("{url}x");".")',
    )
    assert number["error"] == 0
    assert number["value"] == pytest.approx(price(address, "output"), rel=1e-9)
    assert missing["error"]


@LOCALES
def test_xml_with_number_is_a_number_in_every_locale(
    office_in: Callable[[str], Office], address: str, locale: str
) -> None:
    url = f"{address}/quote.xml?{ASKED}"
    (number,) = typed(office_in(locale), f'=FILTERXML(WEBSERVICE("{url}");"number(/quote/input)")')
    assert number["error"] == 0
    assert number["value"] == pytest.approx(price(address, "input"), rel=1e-9)


@LOCALES
def test_no_price_can_be_misread_by_a_factor_of_a_thousand(
    office_in: Callable[[str], Office], address: str, locale: str
) -> None:
    """A price that has three decimals by itself: 0.703 times one would be 703 where the comma is the sign."""
    url = f"{address}/quote.txt?{ASKED}&field=usd_per_gpu_hour&price_usd_per_gpu_hour=0.703"
    right, careless = typed(
        office_in(locale), f'=NUMBERVALUE(WEBSERVICE("{url}");".")', f'=WEBSERVICE("{url}")*1'
    )
    assert right["value"] == pytest.approx(0.703)
    assert careless["error"] or careless["value"] == pytest.approx(0.703)


def test_an_error_as_text_is_read_in_the_cell_and_never_a_number(office: Office, address: str) -> None:
    url = f"{address}/quote.txt?model=llama-3-71b&gpu=h100&ctx=8192&field=output&onerror=text"
    text, number = typed(office, f'=WEBSERVICE("{url}")', f'=NUMBERVALUE(WEBSERVICE("{url}");".")')
    assert text["text"].startswith("#ERROR No model 'llama-3-71b'")
    assert number["error"]


def test_the_formulas_of_the_template_give_the_prices_or_the_reason(office: Office, address: str) -> None:
    # LibreOffice separates arguments by semicolons where a formula is set from outside.
    outside_quotes = r',(?=(?:[^"]*"[^"]*")*[^"]*$)'
    formulas = [
        value_formula("input", 5),
        value_formula("output_low", 5),
        reason_formula(5),
        reason_formula(6),
    ]
    given = {"H1": address, "B5": "h100", "C5": "8192", "B6": "h100", "C6": "8192"}
    # Column A is where the formulas go, so the models stand in column G.
    placed = [
        "=" + re.sub(outside_quotes, ";", formula.replace("service&", "$H$1&").replace("(A", "(G"))
        for formula in formulas
    ]
    cells = {**given, "G5": "llama-3-70b", "G6": "llama-3-71b"}
    (values,) = office([{"open": NEW, "cells": cells, "formulas": placed}])
    answer = httpx.get(f"{address}/quote?{ASKED}", timeout=30).json()
    assert values[0]["value"] == pytest.approx(float(answer["prices"]["input"]["usd_per_mtok"]), rel=1e-9)
    assert values[1]["value"] == pytest.approx(float(answer["prices"]["output"]["low"]), rel=1e-9)
    assert values[2]["text"] == ""
    assert values[3]["text"].startswith("#ERROR No model")


@LOCALES
def test_a_workbook_opens_by_its_address_with_true_numbers(
    office_in: Callable[[str], Office], address: str, locale: str
) -> None:
    url = f"{address}/quote.xlsx?model=llama-3-70b,llama-3-8b&gpu=h100&ctx=8192"
    ((table,),) = office_in(locale)([{"open": url, "sheet": "quotes", "columns": 20}])
    head = [cell["text"] for cell in table[0]]
    column = head.index("input_usd_per_mtok")
    assert table[1][column]["value"] == pytest.approx(price(address, "input"), rel=1e-9)
    assert [row[head.index("model")]["text"] for row in table[1:3]] == ["llama-3-70b", "llama-3-8b"]


def test_a_csv_opens_by_its_address_and_runs_nothing(office: Office, address: str) -> None:
    url = f"{address}/quote.csv?model=llama-3-70b,%3D1%2B1&gpu=h100&ctx=8192"
    ((table,),) = office([{"open": url, "sheet": "", "columns": 20}])
    head = [cell["text"] for cell in table[0]]
    assert table[1][head.index("input_usd_per_mtok")]["value"] == pytest.approx(
        price(address, "input"), rel=1e-9
    )
    hostile = table[2][head.index("model")]
    assert hostile["text"] == "'=1+1"
    assert not hostile["formula"].startswith("=")


def test_the_template_opens_with_its_sheets_and_formulas(office: Office, address: str) -> None:
    ((table,),) = office([{"open": f"{address}/template.xlsx", "sheet": "Prices", "columns": 9}])
    assert table[1][1]["text"] == address
    assert [row[0]["text"] for row in table[4:7]] == ["llama-3-70b", "llama-3-70b", "llama-3-8b"]
    assert "NUMBERVALUE(WEBSERVICE(service" in table[4][3]["formula"].upper().replace("SERVICE&", "service&")
