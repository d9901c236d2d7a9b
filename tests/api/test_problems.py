"""What goes wrong, in words: every error says what was asked, what is there and what to do."""

import logging
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from costsvc.api.problems import KINDS
from costsvc.app import create_app
from tests.api.conftest import Client, settings_for

QUOTE = "/quote?model=llama-3-70b&gpu=h100&ctx=8192"
# No other test asks it, so that no answer is held.
UNASKED = f"{QUOTE}&output=177"
JSON = "application/json"

READS = [
    ("/quote", 400, "invalid-request", ["model is missing", "gpu is missing"]),
    (
        "/quote?model=llama-3-70b&gpu=h100",
        400,
        "invalid-request",
        ["is missing: give the context per request"],
    ),
    (f"{QUOTE}&modle=x", 400, "unknown-parameter", ["'modle'", "Did you mean", "'model'"]),
    (f"{QUOTE}&ctx=9", 400, "repeated-parameter", ["'ctx' is given more than once"]),
    (f"{QUOTE}&output=0", 400, "invalid-request", ["output is '0'", "greater than or equal to 1"]),
    (f"{QUOTE}&output=8192", 400, "invalid-request", ["raise ctx or lower output"]),
    (f"{QUOTE}&margin=nan", 400, "invalid-request", ["margin is 'nan'", "finite"]),
    (f"{QUOTE}&slo=fast", 400, "invalid-request", ["slo is 'fast'", "'strict'"]),
    (f"{QUOTE}&profile=chat", 400, "invalid-request", ["profile already says what ctx would"]),
    ("/quote?model=llama-3-70b&gpu=h100&profile=chatt", 404, "not-in-catalog", ["chat", "/profiles"]),
    (
        "/quote?model=lama-3-70b&gpu=h100&ctx=8192",
        404,
        "not-in-catalog",
        ["No model 'lama-3-70b'", "llama-3-70b"],
    ),
    ("/quote?model=llama-3-70b&gpu=h1000&ctx=8192", 404, "not-in-catalog", ["No gpu 'h1000'", "/gpus"]),
    (f"{QUOTE}&provider=nobody", 404, "not-in-catalog", ["No provider 'nobody'"]),
    (f"{QUOTE}&revision=1000000", 404, "not-in-catalog", ["No revision '1000000'"]),
    (f"{QUOTE}&gpus=1", 422, "does-not-fit", ["weights", "GB", "It fits on gpus="]),
    (f"{QUOTE}&tpot_ms=0.01", 422, "slo-unreachable", ["TPOT <= 0.01 ms", "Relax"]),
    (f"{QUOTE}&tp=3", 422, "unsupported-layout", ["tp=3", "Choose tp from 1, 2, 4"]),
    (f"{QUOTE}&as_of=1990-01-01", 422, "no-price-in-force", ["1990-01-01", "price_usd_per_gpu_hour"]),
    ("/models/none-of-these", 404, "not-in-catalog", ["No model 'none-of-these'"]),
    ("/gpus/h1000", 404, "not-in-catalog", ["Nearest: "]),
    ("/prices/x", 404, "not-in-catalog", ["No offer 'x'", "/prices"]),
    ("/api-prices/x", 404, "not-in-catalog", ["/api-prices"]),
    ("/models?famly=llama", 400, "unknown-parameter", ["'famly'", "'family'"]),
    ("/prices?as_of=tomorrow", 400, "invalid-request", ["as_of is 'tomorrow'"]),
    ("/prices?market=cheap", 400, "invalid-request", ["market is 'cheap'", "'spot'"]),
    ("/readyz?deep=1", 400, "unknown-parameter", ["'deep'"]),
    ("/nowhere", 404, "no-such-page", ["nothing at /nowhere", "/docs"]),
    ("/docs/nowhere", 404, "no-such-page", ["nothing at /docs/nowhere"]),
    ("/problems/nowhere", 404, "no-such-page", ["nothing at /problems/nowhere"]),
]


def problem(response: Any, status: int, slug: str) -> Any:
    """The problem in a response, held against RFC 9457 and our own promises."""
    assert response.status_code == status, response.text
    assert response.headers["Content-Type"] == "application/problem+json"
    body = response.json()
    assert (body["status"], body["type"]) == (status, f"/problems/{slug}")
    assert body["title"]
    assert body["instance"] == response.request.url.path
    return body


@pytest.mark.parametrize(("url", "status", "slug", "words"), READS, ids=[url for url, *_ in READS])
def test_a_read_that_fails_says_why_and_what_to_do(
    client: Client, url: str, status: int, slug: str, words: list[str]
) -> None:
    body = problem(client.get(url), status, slug)
    for word in words:
        assert word in body["detail"]


def test_each_field_has_its_own_complaint(client: Client) -> None:
    errors = client.get("/quote?ctx=x&output=y").json()["errors"]
    assert [error["field"] for error in errors] == ["model", "gpu", "ctx", "output"]
    assert "ctx is 'x'" in errors[2]["detail"]


def test_what_a_program_needs_is_beside_the_words(client: Client) -> None:
    body = client.get(f"{QUOTE}&gpus=1").json()
    assert body["needed_bytes_per_gpu"] > body["available_bytes_per_gpu"]
    assert "llama-3-70b" in client.get("/quote?model=lama-3-70b&gpu=h100&ctx=8192").json()["nearest"]


@pytest.mark.parametrize(
    ("content", "content_type", "refusal"),
    [
        (b"{", JSON, (400, "invalid-request", "not valid JSON")),
        (b"[]", JSON, (400, "invalid-request", "not an object")),
        (b'{"model":"a","model":"b"}', JSON, (400, "repeated-parameter", "'model'")),
        (b'{"model":"\\ud800","gpu":"h100","ctx":9}', JSON, (400, "invalid-request", "not valid JSON")),
        (b'{"colour":1}', JSON, (400, "unknown-parameter", "'colour'")),
        (b"{}", "text/csv", (415, "unsupported-media-type", "Content-Type is 'text/csv'")),
        (b"{}", "", (415, "unsupported-media-type", "Content-Type is missing")),
        (b" " * 1_000_001, JSON, (413, "body-too-large", "1000000 bytes")),
    ],
)
def test_a_body_that_cannot_be_read_says_why(
    client: Client, content: bytes, content_type: str, refusal: tuple[int, str, str]
) -> None:
    status, slug, words = refusal
    response = client.post("/quote", content=content, headers={"Content-Type": content_type})
    assert words in problem(response, status, slug)["detail"]


def test_a_profile_is_checked_field_by_field(client: Client) -> None:
    body = {"model": "llama-3-70b", "gpu": "h100", "profile": {"input_tokens": -1, "output_tokens": 5}}
    errors = problem(client.post("/quote", json=body), 400, "invalid-request")["errors"]
    assert errors[0]["field"] == "profile.input_tokens"


def test_a_method_that_a_path_lacks_names_those_it_has(client: Client) -> None:
    response = client.delete("/quote")
    assert "GET, HEAD" in problem(response, 405, "method-not-allowed")["detail"]
    assert "GET" in response.headers["Allow"]


@pytest.mark.parametrize("accept", ["image/png", "text/html, application/json;q=0", "application/xml;q=nan"])
def test_a_format_that_there_is_not_is_refused(client: Client, accept: str) -> None:
    response = client.get(QUOTE, headers={"Accept": accept})
    assert "choose one of application/json" in problem(response, 406, "not-acceptable")["detail"]


@pytest.mark.parametrize(
    "accept", ["*/*", "application/*", "text/html,*/*;q=0.1", "application/json;q=inf", ""]
)
def test_a_format_that_there_is_is_found(client: Client, accept: str) -> None:
    assert client.get(QUOTE, headers={"Accept": accept}).status_code == 200


def test_a_fault_of_the_service_shows_a_request_id_alone_and_logs_the_reason(
    client: Client, key: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the secret reason")

    monkeypatch.setattr("costsvc.api.quote.make_quote", broken)
    with caplog.at_level(logging.ERROR):
        response = client.get(f"{UNASKED}&api_key={key}", headers={"X-Request-Id": "from-the-caller"})
    body = problem(response, 500, "internal-error")
    assert body["request_id"] == response.headers["X-Request-Id"] == "from-the-caller"
    assert "secret reason" not in response.text
    assert "from-the-caller" in caplog.text
    assert "the secret reason" in caplog.text
    assert key.rpartition("_")[2] not in caplog.text


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_never_leaves_as_an_answer(
    client: Client, monkeypatch: pytest.MonkeyPatch, number: float
) -> None:
    monkeypatch.setattr("costsvc.api.quote.make_quote", lambda *_: {"price": number})
    problem(client.get(UNASKED), 500, "internal-error")


def test_a_request_id_that_could_harm_a_log_is_replaced(client: Client) -> None:
    shown = client.get("/healthz", headers={"X-Request-Id": "a b\tc"}).headers["X-Request-Id"]
    assert shown.isalnum()


@pytest.mark.parametrize("slug", sorted(KINDS))
def test_the_type_of_every_problem_is_a_page_about_it(client: Client, slug: str) -> None:
    page = client.get(f"/problems/{slug}")
    assert page.headers["Content-Type"].startswith("text/html")
    assert f"<h1>{KINDS[slug].title}</h1>" in page.text
    assert KINDS[slug].meaning.split()[0] in page.text
    assert f"/problems/{slug}" in client.get("/problems").text


def test_without_a_catalog_the_service_lives_but_is_not_ready(tmp_path: Path) -> None:
    with TestClient(create_app(settings_for(tmp_path / "none.db"))) as client:
        assert client.get("/healthz").json() == {"alive": True}
        for url in (QUOTE, "/models", "/readyz"):
            assert "costsvc catalog load" in problem(client.get(url), 503, "unavailable")["detail"]
