"""Thousands of quotes in one call: in and out as JSON, CSV or a workbook."""

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from litestar.testing import TestClient

from costsvc.app import create_app
from costsvc.quoting.batch import MAX_ROWS
from tests.api.conftest import TODAY, Client, settings_for

CSV, JSON = "text/csv", "application/json"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ROWS: tuple[dict[str, Any], ...] = (
    {"label": "first", "model": "llama-3-70b", "gpu": "h100", "ctx": 8192},
    {"label": "=1+1", "model": "llama-3-70b", "gpu": "h100", "ctx": 4096, "utilization": 0.5},
    {"label": "unknown", "model": "no-such-model", "gpu": "h100", "ctx": 4096},
    {"label": "too long", "model": "llama-3-70b", "gpu": "h100", "ctx": 1_000_000},
    {"label": "no ctx", "model": "llama-3-70b", "gpu": "h100"},
    {"label": "money", "model": "llama-3-70b", "gpu": "h100", "ctx": 8192, "price_usd_per_gpu_hour": 2.5},
)


@pytest.fixture(scope="module")
def client(small: Path) -> Iterator[Client]:
    app = create_app(settings_for(small), today=lambda: TODAY)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def body_of(content_type: str, rows: tuple[dict[str, Any], ...] = ROWS) -> bytes:
    names = list(dict.fromkeys(name for row in rows for name in row))
    if content_type == JSON:
        return json.dumps({"rows": rows}).encode()
    if content_type == CSV:
        text = io.StringIO()
        writer = csv.DictWriter(text, names)
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().encode()
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.append(names)
    for row in rows:
        sheet.append([row.get(name) for name in names])
    for cell in sheet["A"]:
        cell.data_type = "s"
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def read(content_type: str, content: bytes) -> list[dict[str, Any]]:
    if content_type == JSON:
        return list(json.loads(content)["items"])
    if content_type == CSV:
        return list(csv.DictReader(io.StringIO(content.decode())))
    lines = openpyxl.load_workbook(io.BytesIO(content)).worksheets[0].iter_rows(values_only=True)
    head = next(lines)
    return [dict(zip(map(str, head), line, strict=True)) for line in lines]


@pytest.mark.parametrize("out", [JSON, CSV, XLSX])
@pytest.mark.parametrize("sent", [JSON, CSV, XLSX])
def test_every_row_has_its_prices_or_its_reason_whatever_goes_in_and_out(
    client: Client, sent: str, out: str
) -> None:
    headers = {"Content-Type": sent, "Accept": out}
    response = client.post("/quotes/batch", content=body_of(sent), headers=headers)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith(out)
    rows = read(out, response.content)
    assert [int(row["row"]) for row in rows] == [1, 2, 3, 4, 5, 6]
    alone = client.get("/quote?model=llama-3-70b&gpu=h100&ctx=8192").json()
    assert float(rows[0]["output_usd_per_mtok"]) == pytest.approx(
        float(alone["prices"]["output"]["usd_per_mtok"])
    )
    dearer = float(alone["cost"]["gpu_price"]["usd_per_gpu_hour"]) / 2.5
    assert float(rows[0]["request_usd"]) / float(rows[5]["request_usd"]) == pytest.approx(dearer, rel=1e-6)
    assert [bool(row["error"]) for row in rows] == [False, False, True, True, True, False]
    assert "No model 'no-such-model'" in rows[2]["error"]
    assert "takes at most 8,192" in rows[3]["error"]
    assert "ctx is missing" in rows[4]["error"].lower() or "Ctx is missing" in rows[4]["error"]
    assert rows[1]["label"] == ("'=1+1" if out == CSV else "=1+1")


def test_without_a_wish_the_answer_has_the_format_of_the_question(client: Client) -> None:
    for sent in (JSON, CSV, XLSX):
        response = client.post(
            "/quotes/batch", content=body_of(sent, ROWS[:1]), headers={"Content-Type": sent}
        )
        assert response.headers["content-type"].startswith(sent)


def test_a_formula_in_a_label_stays_text_in_the_workbook(client: Client) -> None:
    headers = {"Content-Type": CSV}
    response = client.post("/quotes/batch?format=xlsx", content=body_of(CSV), headers=headers)
    sheet = openpyxl.load_workbook(io.BytesIO(response.content)).worksheets[0]
    assert (sheet["B3"].value, sheet["B3"].data_type) == ("=1+1", "s")


@pytest.mark.parametrize(
    ("content_type", "content", "status", "said"),
    [
        ("text/html", b"", 415, "text/csv"),
        (CSV, b"model,gpu,ctxx\n", 400, "Did you mean ctx"),
        (CSV, b"model,model\n", 400, "stands twice"),
        (CSV, b"model;gpu;ctx\n", 400, "separated by semicolons. Separate them by commas"),
        (CSV, b"model,gpu,input_tokens\n", 400, "Did you mean ctx?"),
        (CSV, b"", 400, "must name the columns"),
        (CSV, b"\xff\xfe", 400, "not CSV in UTF-8"),
        (JSON, b"[]", 400, "not an object"),
        (JSON, b'{"rows": [1]}', 400, '{"rows": ['),
        (XLSX, b"PK nonsense", 400, "not a workbook"),
        (CSV, b"model,gpu,ctx\n" + b"a,b,1\n" * (MAX_ROWS + 1), 400, "10,000 at most"),
    ],
)
def test_a_file_that_is_none_is_refused_as_a_whole(
    client: Client, content_type: str, content: bytes, status: int, said: str
) -> None:
    response = client.post("/quotes/batch", content=content, headers={"Content-Type": content_type})
    assert response.status_code == status
    assert said in response.json()["detail"]


def test_a_workbook_that_unfolds_without_end_is_refused(client: Client) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as folded:
        for sheet in range(3):
            folded.writestr(f"xl/worksheets/sheet{sheet}.xml", b"0" * 100_000_000)
    response = client.post("/quotes/batch", content=bomb.getvalue(), headers={"Content-Type": XLSX})
    assert response.status_code == 400
    assert "unfolds to 300,000,000 bytes" in response.json()["detail"]


def test_a_row_with_a_cell_too_many_says_so(client: Client) -> None:
    content = b"model,gpu,ctx\nllama-3-70b,h100,4096,surprise\n"
    (row,) = read(CSV, client.post("/quotes/batch", content=content, headers={"Content-Type": CSV}).content)
    assert "more cells than the header" in row["error"]


def test_a_row_of_another_revision_is_not_answered_from_this_one(client: Client) -> None:
    content = b"model,gpu,ctx,revision\nllama-3-70b,h100,4096,1\nllama-3-70b,h100,4096,7\n"
    rows = read(CSV, client.post("/quotes/batch", content=content, headers={"Content-Type": CSV}).content)
    assert rows[0]["error"] == ""
    assert "revision is 7" in rows[1]["error"]
