"""Stored quotes over HTTP: the same bytes for ever, for their owner, explained against each other."""

import csv
import io
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from costsvc import app as composition
from costsvc.db.engine import make_engine
from costsvc.db.keys import KeyRepository
from costsvc.db.repository import CatalogRepository
from costsvc.quoting import quote as quoting
from costsvc.quoting.publishing import publish_files
from tests.api.conftest import TODAY, Client, settings_for
from tests.engine.shapes import one_of_each

ASKED = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192}


def served(path: Path, today: date = TODAY) -> Client:
    return TestClient(composition.create_app(settings_for(path), today=lambda: today))


@pytest.fixture
def client(database: Path) -> Iterator[Client]:
    with served(database) as client:
        yield client


@pytest.fixture
def key_of(database: Path) -> Callable[..., dict[str, str]]:
    """Headers with a new key of an owner."""

    def make(owner: str, scope: Any = "quote") -> dict[str, str]:
        engine = make_engine(f"sqlite:///{database}")
        secret, _ = KeyRepository(engine).create(scope=scope, label="tests", owner=owner, author="tests")
        engine.dispose()
        return {"X-API-Key": secret}

    return make


@pytest.fixture
def finance(key_of: Callable[..., dict[str, str]]) -> dict[str, str]:
    return key_of("finance")


def kept(client: Client, key: dict[str, str], **asked: object) -> dict[str, Any]:
    response = client.post("/quotes", json={**ASKED, **asked}, headers=key)
    assert response.status_code == 201, response.text
    return dict(response.json())


def test_a_stored_quote_holds_the_quote_its_trace_and_what_makes_it_again(
    client: Client, finance: dict[str, str]
) -> None:
    made = kept(client, finance, label="launch", utilization=0.7)
    assert made["label"] == "launch"
    assert made["asked"] == {**ASKED, "utilization": 0.7, "as_of": TODAY.isoformat(), "revision": 1}
    again = client.post("/quote", json={**made["asked"], "trace": True}).json()
    assert made["quote"] == again
    assert {"trace", "assumptions", "sources", "engine_version"} <= set(made["quote"])


FORMATS = ("", ".csv", ".xml", ".xlsx", ".txt?field=output")


def test_every_format_is_the_same_bytes_after_the_catalog_the_code_and_the_day_changed(
    client: Client,
    database: Path,
    finance: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    id = kept(client, finance)["id"]
    before = [client.get(f"/quotes/{id}{suffix}", headers=finance).content for suffix in FORMATS]
    engine = make_engine(f"sqlite:///{database}")
    dearer = tuple(
        replace(
            offer,
            prices=tuple(
                replace(price, usd_per_gpu_hour=price.usd_per_gpu_hour and price.usd_per_gpu_hour * 2)
                for price in offer.prices
            ),
        )
        for offer in one_of_each().offers
    )
    publish_files(CatalogRepository(engine), replace(one_of_each(), offers=dearer), author="tests", note="")
    engine.dispose()
    monkeypatch.setattr(quoting, "ENGINE_VERSION", "9.9.9")
    with served(database, today=date(2027, 3, 1)) as later:
        now = later.post("/quote", json={**ASKED, "as_of": TODAY.isoformat()}).json()
        after = [later.get(f"/quotes/{id}{suffix}", headers=finance).content for suffix in FORMATS]
    assert now["engine_version"] == "9.9.9"
    assert after == before
    (row,) = csv.DictReader(io.StringIO(before[1].decode()))
    assert float(now["prices"]["output"]["usd_per_mtok"]) == pytest.approx(
        2 * float(row["output_usd_per_mtok"])
    )
    assert before[4].decode() == row["output_usd_per_mtok"]
    assert row["id"] == id


def test_a_stored_quote_never_expires_and_says_so(client: Client, finance: dict[str, str]) -> None:
    id = kept(client, finance)["id"]
    got = client.get(f"/quotes/{id}", headers=finance)
    assert got.headers["cache-control"] == "private, max-age=31536000, immutable"
    again = client.get(f"/quotes/{id}", headers={**finance, "If-None-Match": got.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_an_owner_reads_with_any_of_its_keys_others_do_not_and_an_admin_does(
    client: Client, key_of: Callable[..., dict[str, str]], finance: dict[str, str]
) -> None:
    id = kept(client, finance)["id"]
    assert client.get(f"/quotes/{id}", headers=key_of("finance")).status_code == 200
    assert client.get(f"/quotes/{id}", headers=key_of("", "admin")).status_code == 200
    assert client.get(f"/quotes/{id}?api_key={finance['X-API-Key']}").status_code == 200
    for stranger in (key_of("sales"), key_of("")):
        assert client.get(f"/quotes/{id}", headers=stranger).status_code == 404
        assert client.get("/quotes", headers=stranger).json() == {"items": []}
    assert client.get(f"/quotes/{id}").status_code == 401
    refused = client.post(f"/quotes?api_key={finance['X-API-Key']}", json=ASKED)
    assert refused.status_code == 401


def test_an_idempotency_key_keeps_one_quote(client: Client, finance: dict[str, str]) -> None:
    once = {**finance, "Idempotency-Key": "order-7"}
    first, second = (client.post("/quotes", json=ASKED, headers=once) for _ in range(2))
    assert first.content == second.content
    other = client.post("/quotes", json={**ASKED, "ctx": 4096}, headers=once)
    assert other.status_code == 409
    assert other.json()["type"] == "/problems/idempotency-conflict"
    assert other.json()["id"] == first.json()["id"]
    assert len(client.get("/quotes", headers=finance).json()["items"]) == 1


def test_quotes_are_searched_by_label_model_and_day(client: Client, finance: dict[str, str]) -> None:
    id = kept(client, finance, label="Budget 2027")["id"]
    kept(client, finance, label="=SUM(A1)")
    for query, count in (
        ("", 2),
        ("?label=budget", 1),
        ("?model=llama-3-70b", 2),
        ("?since=2100-01-01", 0),
        ("?until=2000-01-01", 0),
        ("?limit=1", 1),
    ):
        assert len(client.get(f"/quotes{query}", headers=finance).json()["items"]) == count, query
    assert client.get("/quotes?label=budget", headers=finance).json()["items"][0]["id"] == id
    table = client.get("/quotes.csv", headers=finance).text
    assert "'=SUM(A1)" in table


def test_what_cannot_be_quoted_is_not_kept(client: Client, finance: dict[str, str]) -> None:
    refused = client.post("/quotes", json={**ASKED, "gpus": 1}, headers=finance)
    assert refused.status_code == 422
    assert client.post("/quotes", json={**ASKED, "label": 7}, headers=finance).status_code == 400
    assert client.get("/quotes", headers=finance).json() == {"items": []}


def explained(client: Client, key: dict[str, str], a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    response = client.get(f"/quotes/{a['id']}/compare/{b['id']}", headers=key)
    assert response.status_code == 200, response.text
    return dict(response.json())


def test_a_difference_is_explained_cause_by_cause_and_adds_up(
    client: Client, finance: dict[str, str]
) -> None:
    a = kept(client, finance, price_usd_per_gpu_hour="3.00")
    b = kept(
        client, finance, price_usd_per_gpu_hour="4.50", utilization=0.5, ctx=4096, weights="fp8", margin=0.2
    )
    difference = explained(client, finance, a, b)
    factors = {step["cause"]: step["factor"] for step in difference["steps"]}
    assert list(factors) == [
        "context and output",
        "precision",
        "GPU price",
        "utilization and idle capacity",
        "margin",
    ]
    assert factors["GPU price"] == pytest.approx(1.5)
    assert factors["utilization and idle capacity"] == pytest.approx(0.8 / 0.5)
    assert factors["margin"] == pytest.approx(1.2)
    assert factors["context and output"] < 1
    assert factors["precision"] < 1
    usd = [float(one["quote"]["cost"]["request_usd"]) for one in (a, b)]
    assert difference["request_usd"]["ratio"] == pytest.approx(usd[1] / usd[0])
    added = sum(float(step["usd_per_request"]) for step in difference["steps"])
    assert added == pytest.approx(usd[1] - usd[0], rel=1e-6)
    changed = {one["what"]: (one["first"], one["second"]) for one in difference["changed"]}
    assert changed["request.weights"] == ("bf16", "fp8")
    assert changed["request.ctx"] == (8192, 4096)


def test_a_difference_is_a_table_too_whose_steps_add_up_to_its_last_row(
    client: Client, finance: dict[str, str]
) -> None:
    a = kept(client, finance, price_usd_per_gpu_hour="3.00")
    b = kept(client, finance, price_usd_per_gpu_hour="4.50", margin=0.2)
    path = f"/quotes/{a['id']}/compare/{b['id']}"
    *steps, total = csv.DictReader(io.StringIO(client.get(f"{path}.csv", headers=finance).text))
    assert [step["cause"] for step in steps] == ["GPU price", "margin"]
    assert {step["first_id"] for step in (*steps, total)} == {a["id"]}
    added = sum(float(step["usd_per_request"]) for step in steps)
    assert added == pytest.approx(float(total["usd_per_request"]), rel=1e-6)
    assert math.prod(float(step["factor"]) for step in steps) == pytest.approx(float(total["factor"]))
    causes = client.get(f"{path}.txt?field=cause", headers=finance).text
    assert causes.split("\n") == ["GPU price", "margin", "all"]


def test_what_inputs_do_not_explain_is_the_engines(
    client: Client, finance: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    a = kept(client, finance)
    whole = quoting.make_quote

    def dearer(*args: Any) -> Any:
        answer: Any = whole(*args)
        cost = {**answer["cost"], "request_usd": str(float(answer["cost"]["request_usd"]) * 1.1)}
        return {**answer, "engine_version": "9.9.9", "cost": cost}

    monkeypatch.setattr("costsvc.quoting.stored.make_quote", dearer)
    difference = explained(client, finance, a, kept(client, finance))
    (step,) = difference["steps"]
    assert step["cause"].startswith("engine version, calibration")
    assert step["factor"] == pytest.approx(1.1)
    assert "9.9.9" in step["second"]


def test_equal_quotes_have_nothing_to_explain(client: Client, finance: dict[str, str]) -> None:
    a, b = kept(client, finance), kept(client, finance, label="again")
    assert explained(client, finance, a, b)["steps"] == []
    assert explained(client, finance, a, b)["changed"] == []
