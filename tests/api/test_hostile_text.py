"""No text that somebody may put into the catalog, a label or a query is run by a spreadsheet that shows it."""

import csv
import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import openpyxl
import pytest
from litestar.testing import TestClient

from costsvc.app import create_app
from costsvc.quoting.tables.cells import harmless
from tests.api.conftest import TODAY, Client, settings_for

HOSTILE = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1)", '=HYPERLINK("http://example.org","x")')
ASKED = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192}


@pytest.fixture(scope="module")
def writing(
    small: Path, tmp_path_factory: pytest.TempPathFactory, make_key: Callable[[Path, Any], str]
) -> Iterator[Client]:
    """A service over a catalog of its own, asked with a key that may do all."""
    path = tmp_path_factory.mktemp("hostile") / "costsvc.db"
    shutil.copy(small, path)
    app = create_app(settings_for(path), today=lambda: TODAY)
    with TestClient(app, raise_server_exceptions=False) as client:
        client.headers["X-API-Key"] = make_key(path, "admin")
        for text in HOSTILE:
            posted(client, "/prices", offer(text))
        yield client


def posted(client: Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post(path, json=body)
    assert response.status_code in {200, 201}, response.text
    return dict(response.json())


def offer(text: str) -> dict[str, Any]:
    return {
        "provider": text,
        "gpu": "h100",
        "market": "on-demand",
        "region": text,
        "instance_type": text,
        "basis": "per-gpu",
        "prices": [{"usd_per_gpu_hour": "2.5", "first_day": "2026-11-01"}],
        "source": {"title": text, "kind": "vendor", "accessed": "2026-11-20"},
    }


def texts_of(client: Client, path: str, **query: str) -> set[str]:
    """Every cell of a table as CSV; its workbook and its XML are looked at too."""
    table = client.get(f"{path}.csv", params=query)
    assert table.status_code == 200, table.text
    book = openpyxl.load_workbook(io.BytesIO(client.get(f"{path}.xlsx", params=query).content))
    assert not [cell for row in book.worksheets[0].iter_rows() for cell in row if cell.data_type == "f"]
    ElementTree.fromstring(client.get(f"{path}.xml", params=query).content)  # noqa: S314 - our own answer
    return {cell for line in csv.reader(io.StringIO(table.text, newline="")) for cell in line}


def runs(cells: set[str]) -> set[str]:
    """Cells that a spreadsheet would run: what begins a formula and is no number."""
    return {cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))}


def test_an_offers_texts_run_nowhere(writing: Client) -> None:
    cells = texts_of(writing, "/prices", gpu="h100")
    assert {harmless(text) for text in HOSTILE} <= cells
    assert not runs(cells)
    asked = {name: str(value) for name, value in {**ASKED, "ctx": "4096,8192"}.items()}
    for text in HOSTILE:
        assert not runs(texts_of(writing, "/quote", **asked, provider=text))


def test_labels_run_nowhere(writing: Client) -> None:
    for text in HOSTILE:
        posted(writing, "/quotes", {**ASKED, "attribution": "step", "label": text})
    kept = texts_of(writing, "/quotes")
    lines = [{"label": text, "requests_per_month": 1000, "quote": ASKED} for text in HOSTILE]
    budget = {"first_month": "2027-01", "months": 1, "lines": lines}
    batch = {"rows": [{**ASKED, "label": text} for text in HOSTILE]}
    answers = [writing.post("/budget.csv", json=budget), writing.post("/quotes/batch?format=csv", json=batch)]
    tables = [csv.reader(io.StringIO(answer.text, newline="")) for answer in answers]
    for cells in (kept, *({cell for line in table for cell in line} for table in tables)):
        assert {harmless(text) for text in HOSTILE} <= cells
        assert not runs(cells)


def test_the_texts_of_an_audit_workbook_are_texts(writing: Client) -> None:
    query = {name: str(value) for name, value in {**ASKED, "provider": HOSTILE[0]}.items()}
    book = openpyxl.load_workbook(io.BytesIO(writing.get("/quote.xlsx", params=query).content))
    cells = [cell for name in ("Sources", "Band") for row in book[name].iter_rows() for cell in row]
    assert HOSTILE[0] in {cell.value for cell in cells}
    assert {cell.data_type for cell in cells} <= {"s", "n"}
