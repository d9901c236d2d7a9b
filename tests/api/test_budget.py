"""A portfolio over months: totals are the sums of what is shown."""

import csv
import io
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from litestar.testing import TestClient

from costsvc.app import create_app
from tests.api.conftest import TODAY, Client, settings_for

QUOTE = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192}
BUDGET: dict[str, Any] = {
    "first_month": "2026-11",
    "months": 4,
    "lines": [
        {"label": "chat", "quote": QUOTE, "requests_per_month": 1_000_003, "monthly_growth": 0.1},
        {
            "label": "=code",
            "quote": {**QUOTE, "ctx": 4096, "hit_rate": 0.5},
            "requests_per_month": 333_333,
            "starts": 3,
        },
    ],
}


@pytest.fixture(scope="module")
def client(small: Path) -> Iterator[Client]:
    app = create_app(settings_for(small), today=lambda: TODAY)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def rows(client: Client, **more: Any) -> list[dict[str, str]]:
    response = client.post("/budget.csv", json={**BUDGET, **more})
    assert response.status_code == 200, response.text
    return list(csv.DictReader(io.StringIO(response.text)))


def test_every_total_is_the_sum_of_the_rows_shown(client: Client) -> None:
    table = rows(client)
    assert [(row["month"], row["label"]) for row in table] == [
        ("2026-11", "chat"),
        ("2026-11", "total"),
        ("2026-12", "chat"),
        ("2026-12", "total"),
        ("2027-01", "chat"),
        ("2027-01", "'=code"),
        ("2027-01", "total"),
        ("2027-02", "chat"),
        ("2027-02", "'=code"),
        ("2027-02", "total"),
        ("2026", "year"),
        ("2027", "year"),
    ]
    for name in ("usd", "low_usd", "high_usd", "requests"):
        for month in ("2026-11", "2027-01"):
            of_month = [row for row in table if row["month"] == month]
            shown = sum(Decimal(row[name]) for row in of_month if row["label"] != "total")
            assert Decimal(of_month[-1][name]) == shown
        of_year = sum(Decimal(r[name]) for r in table if r["month"][:5] == "2027-" and r["label"] == "total")
        assert Decimal(table[-1][name]) == of_year
    assert all(len(row["usd"].partition(".")[2]) == 2 for row in table)


def test_a_month_costs_its_requests_at_the_price_of_the_quote(client: Client) -> None:
    first, third = (rows(client)[index] for index in (0, 4))
    request_usd = float(
        client.get("/quote?model=llama-3-70b&gpu=h100&ctx=8192").json()["cost"]["request_usd"]
    )
    assert float(first["usd"]) == pytest.approx(1_000_003 * request_usd, abs=0.011)
    assert third["requests"] == "1210004"
    assert float(third["usd"]) == pytest.approx(1_210_004 * request_usd, abs=0.011)
    assert Decimal(first["low_usd"]) < Decimal(first["usd"]) < Decimal(first["high_usd"])


def test_a_use_without_a_price_says_why_and_so_do_its_totals(client: Client) -> None:
    lines = [
        BUDGET["lines"][0],
        {"label": "lost", "quote": {**QUOTE, "model": "nothing"}, "requests_per_month": 1},
    ]
    table = rows(client, lines=lines, months=1)
    assert "No model 'nothing'" in table[1]["error"]
    assert (table[1]["usd"], table[2]["usd"]) == ("", table[0]["usd"])
    assert table[2]["error"] == "1 row without a price"


def test_amounts_beyond_all_measure_are_still_exact(client: Client) -> None:
    line = {"label": "all", "quote": QUOTE, "requests_per_month": 1e15, "monthly_growth": 10}
    table = rows(client, lines=[line], months=60)
    assert Decimal(table[-1]["usd"]) > Decimal(10) ** 60
    assert sum(Decimal(row["usd"]) for row in table if row["label"] == "year") == sum(
        Decimal(row["usd"]) for row in table if row["label"] == "all"
    )


def test_json_and_the_workbook_hold_the_same(client: Client) -> None:
    table = rows(client)
    items = client.post("/budget", json=BUDGET).json()["items"]
    assert [item["usd"] for item in items] == [row["usd"] for row in table]
    content = client.post("/budget.xlsx", json=BUDGET).content
    head, *lines = openpyxl.load_workbook(io.BytesIO(content)).worksheets[0].iter_rows(values_only=True)
    column = head.index("usd")
    assert [line[column] for line in lines] == [float(row["usd"]) for row in table]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"first_month": "2026-13"}, "first_month"),
        ({"months": 0}, "months"),
        ({"lines": []}, "lines"),
        ({"lines": [BUDGET["lines"][0]] * 2}, "stands twice"),
    ],
)
def test_a_budget_that_is_none_says_what_is_wrong(client: Client, more: dict[str, Any], said: str) -> None:
    response = client.post("/budget", json={**BUDGET, **more})
    assert response.status_code == 400
    assert said in response.json()["detail"]
