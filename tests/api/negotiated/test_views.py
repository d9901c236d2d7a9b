"""A negotiated price in every route and format: in its owner's answers, and in nobody else's."""

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import Client
from tests.api.negotiated.examples import ASKED, OFFER, QUOTE, Headers, key

BUDGET = {
    "first_month": "2027-01",
    "months": 1,
    "lines": [{"label": "a", "quote": ASKED, "requests_per_month": 1e6}],
}
READS = [
    f"/quote?{QUOTE}",
    f"/quote?{QUOTE}&as_of=2026-11-01",
    f"/quote?{QUOTE}&revision=1",
    f"/quote.csv?{QUOTE}",
    f"/quote.xml?{QUOTE}",
    f"/quote.txt?{QUOTE}&field=output",
    f"/quote.xlsx?{QUOTE}",
    "/quote.csv?model=llama-3-70b&gpu=h100&ctx=8192,16384",
    "/quote.xml?model=llama-3-70b&gpu=h100&ctx=8192,16384",
    "/quote.xlsx?model=llama-3-70b&gpu=h100&ctx=8192,16384",
    f"/compare?{QUOTE}",
    f"/compare.csv?{QUOTE}",
    f"/compare.xml?{QUOTE}",
    f"/compare.xlsx?{QUOTE}",
    f"/compare.txt?{QUOTE}&field=request_usd",
    f"/frontier?{QUOTE}",
    f"/frontier.csv?{QUOTE}",
    f"/frontier.xml?{QUOTE}",
    f"/frontier.xlsx?{QUOTE}",
    f"/frontier.txt?{QUOTE}&field=blended_usd_per_mtok",
    f"/curve?{QUOTE}&points=2",
    f"/curve.csv?{QUOTE}&points=2",
    f"/curve.xml?{QUOTE}&points=2",
    f"/curve.xlsx?{QUOTE}&points=2",
    f"/curve.txt?{QUOTE}&points=2&field=request_usd",
    f"/what-if?{QUOTE}",
    f"/roofline?{QUOTE}",
    f"/launch-check?{QUOTE}&rps=5",
    "/gpus",
    "/gpus.csv",
    "/gpus.xml",
    "/gpus.xlsx",
    "/gpus.txt?field=reference_usd_per_gpu_hour",
    "/gpus/h100",
    "/prices",
    "/prices?market=on-demand&gpu=h100",
    "/prices.csv",
    "/prices.xml",
    "/prices.xlsx",
    "/prices.txt?field=usd_per_gpu_hour",
]
POSTS: list[tuple[str, Any]] = [
    ("/quote", ASKED),
    ("/launch-check", {**ASKED, "rps": 5}),
    ("/quotes/batch", {"rows": [ASKED]}),
    ("/quotes/batch?format=csv", {"rows": [ASKED]}),
    ("/quotes/batch?format=xlsx", {"rows": [ASKED]}),
    ("/budget", BUDGET),
    ("/budget.csv", BUDGET),
    ("/budget.xml", BUDGET),
    ("/budget.xlsx", BUDGET),
]
# Nothing in these depends on a price.
WITHOUT_PRICES = [f"/roofline?{QUOTE}"]
# Answers without GPU prices, pages that say how the service is, and what test_offers.py is about.
ELSEWHERE = re.compile(
    r"/(api-prices|fx-rates|models|profiles|quotes|traces|validation|healthz|readyz|template)\b|/prices/{id}"
)
# Of each kind of answer one, quick to make.
SAMPLED = [
    f"/quote?{QUOTE}",
    f"/quote.xlsx?{QUOTE}",
    f"/compare.csv?{QUOTE}",
    "/gpus.csv",
    "/gpus/h100",
    "/prices",
    ("/quote", ASKED),
    ("/quotes/batch", {"rows": [ASKED]}),
    ("/budget", BUDGET),
]


def ask(client: Client, call: Any, headers: Headers) -> tuple[int, Any, Headers]:
    """Status, body and the headers that do not differ from call to call; of a workbook what is in it."""
    url, body = call if isinstance(call, tuple) else (call, None)
    response = (
        client.get(url, headers=headers) if body is None else client.post(url, json=body, headers=headers)
    )
    assert response.status_code == 200, response.text
    kept = {name: value for name, value in response.headers.items() if name != "x-request-id"}
    if ".xlsx" in url or "format=xlsx" in url:
        kept.pop("content-length", None)
        return response.status_code, _sheets(response.content), kept
    return response.status_code, response.content, kept


def _sheets(workbook: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(workbook)) as parts:
        # The core properties hold the moment of writing.
        return {name: parts.read(name) for name in parts.namelist() if "docProps" not in name}


CALLS: list[Any] = [*READS, *POSTS]
Answers = dict[str, list[Any]]


@pytest.fixture(scope="module")
def answers(client: Client, database: Path) -> Answers:
    """Every call: by everybody before the price was written, by another owner and by its owner after."""
    askers = {"another owner": key(database, "another", "admin"), "owner": key(database, "finance")}
    before = [ask(client, call, {}) for call in CALLS]
    response = client.post("/prices", json=OFFER, headers=key(database, "finance", "catalog-write"))
    assert response.status_code == 201, response.text
    after = {who: [ask(client, call, headers) for call in CALLS] for who, headers in askers.items()}
    return {"everybody": before, **after}


def test_no_route_is_left_out(client: Client) -> None:
    asked = {f"get {call}" if isinstance(call, str) else f"post {call[0]}" for call in CALLS} | {
        "post /prices"
    }
    asked = {call.partition("?")[0].replace("/h100", "/{id}") for call in asked}
    there = {
        f"{method} {path}"
        for path, operations in client.get("/docs/openapi.json").json()["paths"].items()
        for method in operations.keys() & {"get", "post"}
        if f"{method} {path}" in asked or not ELSEWHERE.match(path)
    }
    assert there == asked


@pytest.mark.parametrize("call", SAMPLED, ids=str)
def test_everybody_goes_on_seeing_the_same(answers: Answers, client: Client, call: Any) -> None:
    assert ask(client, call, {}) == answers["everybody"][CALLS.index(call)]


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[str(call) for call in CALLS])
def test_another_owner_sees_what_everybody_does(answers: Answers, number: int) -> None:
    status, content, headers = answers["another owner"][number]
    public = answers["everybody"][number]
    assert (status, content) == public[:2]
    said = headers.get("cache-control", "").replace("private", "public")
    assert {**headers, "cache-control": said} == {**public[2], "cache-control": said}


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[str(call) for call in CALLS])
def test_the_owner_sees_it_in_every_route_and_format(answers: Answers, number: int) -> None:
    (_, content, headers), (_, public, others) = answers["owner"][number], answers["everybody"][number]
    assert (content == public) == (CALLS[number] in WITHOUT_PRICES)
    assert headers["x-private-revision"] == "1"
    assert "x-private-revision" not in others
    if "etag" in others:
        assert headers["etag"] != others["etag"]
        assert headers["cache-control"].startswith("private")


@pytest.mark.parametrize("url", [f"/quote?{QUOTE}", "/gpus.csv", "/prices"])
def test_a_tag_of_one_asker_is_no_tag_of_another(
    answers: Answers, client: Client, database: Path, url: str
) -> None:
    number = CALLS.index(url)
    public, own = (answers[who][number][2]["etag"] for who in ("everybody", "owner"))
    finance = key(database, "finance")
    assert client.get(url, headers={**finance, "If-None-Match": public}).status_code == 200
    assert client.get(url, headers={**finance, "If-None-Match": own}).status_code == 304
    assert client.get(url, headers={"If-None-Match": own}).status_code == 200
    assert client.get(url, headers={"If-None-Match": public}).status_code == 304
    kept = [client.get(url, headers=asker).content for asker in (finance, {}, finance)]
    assert kept == [answers[who][number][1] for who in ("owner", "everybody", "owner")]
