"""Writes: an admin adds prices, the next quote knows them, and they survive a restart."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from costsvc.app import create_app
from costsvc.db.audit import audit_entries
from costsvc.db.engine import make_engine
from costsvc.db.repository import CatalogRepository
from costsvc.quoting.publishing import publish_files
from tests.api.conftest import TODAY, Client, MakeKey, settings_for
from tests.engine.shapes import one_of_each

OFFER = {
    "provider": "Cheap Cloud",
    "gpu": "h100",
    "market": "on-demand",
    "basis": "per-gpu",
    "prices": [{"first_day": "2026-11-20", "usd_per_gpu_hour": "0.50"}],
    "source": {"title": "Our contract", "kind": "vendor"},
}
QUOTE = "/quote?model=llama-3-70b&gpu=h100&ctx=8192&provider=Cheap+Cloud"


def test_a_posted_offer_prices_the_next_quote(writable: Client, admin: dict[str, str]) -> None:
    before = writable.get("/readyz").json()["catalog_revision"]
    assert writable.get(QUOTE).status_code == 404
    response = writable.post("/prices", json=OFFER, headers=admin)
    assert response.status_code == 201, response.text
    assert response.json()["catalog_revision"] == before + 1
    assert writable.get(response.headers["Location"]).json()["provider"] == "Cheap Cloud"
    assert writable.get(QUOTE).json()["cost"]["gpu_price"]["usd_per_gpu_hour"] == "0.500000000"


def test_a_price_is_added_to_an_offer_and_its_past_stays(writable: Client, admin: dict[str, str]) -> None:
    offer = writable.get("/prices?gpu=h100&market=on-demand").json()["items"][0]
    more = {"prices": [{"first_day": "2026-11-25", "usd_per_gpu_hour": "1.25"}], "source": OFFER["source"]}
    response = writable.post(f"/prices/{offer['id']}", json=more, headers=admin)
    assert response.status_code == 201, response.text
    history = writable.get(f"/prices/{offer['id']}").json()["history"]
    assert history[-1]["usd_per_gpu_hour"] == "1.250000"
    assert history[-2]["first_day"] == offer["since"]


def test_what_was_posted_survives_a_restart_that_loads_the_files(
    writable: Client, admin: dict[str, str], database: Path
) -> None:
    writable.post("/prices", json=OFFER, headers=admin)
    engine = make_engine(f"sqlite:///{database}")
    publish_files(CatalogRepository(engine), replace(one_of_each(), models=()), author="tests", note="")
    publish_files(CatalogRepository(engine), one_of_each(), author="tests", note="")
    engine.dispose()
    with TestClient(create_app(settings_for(database), today=lambda: TODAY)) as restarted:
        assert restarted.get(QUOTE).status_code == 200


def test_a_write_is_on_record_with_its_author(
    writable: Client, admin: dict[str, str], database: Path
) -> None:
    writable.post("/prices", json=OFFER, headers=admin)
    engine = make_engine(f"sqlite:///{database}")
    newest = audit_entries(engine)[0]
    engine.dispose()
    assert newest.actor.endswith("(tests)")
    assert newest.action == "store catalog"
    assert newest.before is None
    assert newest.after is not None
    assert [price["usd_per_gpu_hour"] for price in newest.after["offer_price"]] == ["0.5"]
    assert newest.after["rows_added"] == 4


def test_a_key_may_come_as_bearer(writable: Client, admin: dict[str, str]) -> None:
    bearer = {"Authorization": f"Bearer {admin['X-API-Key']}"}
    response = writable.post("/prices", json={**OFFER, "gpu": "h1000"}, headers=bearer)
    assert response.status_code == 404, "the key opened, and the GPU was looked for"


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({}, "needs a key"),
        ({"X-API-Key": "costsvc_0_0"}, "not known"),
        ({"Authorization": "Basic eDp5"}, "needs a key"),
    ],
)
def test_without_a_valid_key_nothing_is_written(
    writable: Client, headers: dict[str, str], words: str
) -> None:
    response = writable.post("/prices", json=OFFER, headers=headers)
    assert (response.status_code, response.json()["type"]) == (401, "/problems/not-authorized")
    assert words in response.json()["detail"]
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert writable.get(QUOTE).status_code == 404


def test_a_key_in_the_query_opens_no_write(writable: Client, admin: dict[str, str]) -> None:
    response = writable.post(f"/prices?api_key={admin['X-API-Key']}", json=OFFER)
    assert response.status_code == 401


def test_a_read_key_may_not_write(writable: Client, database: Path, make_key: MakeKey) -> None:
    response = writable.post("/prices", json=OFFER, headers={"X-API-Key": make_key(database, "read")})
    assert (response.status_code, response.json()["type"]) == (403, "/problems/forbidden")
    assert "scope read, which does not allow this" in response.json()["detail"]


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"gpu": "h1000"}, 404, "No gpu 'h1000'"),
        ({"market": "cheap"}, 400, "market is 'cheap'"),
        ({"prices": [{"first_day": "2026-11-20", "usd_per_gpu_hour": 0.5}]}, 400, "write money in quotes"),
    ],
)
def test_an_offer_that_the_files_schema_refuses_is_not_written(
    writable: Client, admin: dict[str, str], changes: dict[str, Any], status: int, words: str
) -> None:
    response = writable.post("/prices", json={**OFFER, **changes}, headers=admin)
    assert response.status_code == status
    assert words in response.json()["detail"]
    assert writable.get(QUOTE).status_code == 404


def test_a_member_that_stands_twice_is_refused(writable: Client, admin: dict[str, str]) -> None:
    headers = {**admin, "Content-Type": "application/json"}
    response = writable.post("/prices", content=b'{"gpu": "h100", "gpu": "a100"}', headers=headers)
    assert response.json()["type"] == "/problems/repeated-parameter"
