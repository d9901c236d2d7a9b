"""Two replicas on one database, on each kind of database in turn: what one writes, the other answers from."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from litestar.testing import TestClient
from sqlalchemy import text

from costsvc.app import create_app
from costsvc.db.engine import POSTGRESQL, make_engine, writing
from costsvc.db.keys import KeyRepository
from costsvc.db.repository import CatalogRepository
from costsvc.quoting.publishing import publish_files
from costsvc.settings import Settings
from tests.api.conftest import TODAY, Client
from tests.api.test_imports import POSTED
from tests.api.test_posting import OFFER, QUOTE
from tests.engine.shapes import one_of_each

REFERENCE = "/quote?model=llama-3-70b&gpu=h100&ctx=8192&as_of=2026-11-01&revision=1"
VISIBLE_S = 2.0
# A read that waited for the writer below would take as long as it holds its locks.
WRITER_HOLDS_S = 5.0


@pytest.fixture
def replicas(database_url: str) -> Iterator[tuple[Client, Client]]:
    """Two services with their own connections, which look for a new revision as often as they do by default."""
    engine = make_engine(database_url)
    publish_files(CatalogRepository(engine), one_of_each(), author="tests", note="")
    engine.dispose()
    settings = Settings.model_validate({"database_url": database_url, "rate_per_s": 0})
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(TestClient(create_app(settings, today=lambda: TODAY))) for _ in range(2)
        )
        yield first, second


@pytest.fixture
def admin(database_url: str) -> dict[str, str]:
    """Headers of an admin."""
    engine = make_engine(database_url)
    secret, _ = KeyRepository(engine).create(scope="admin", label="tests", owner="", author="tests")
    engine.dispose()
    return {"X-API-Key": secret}


def seen_after_s(seen: Callable[[], bool]) -> float:
    """How long it takes until something is seen. [s]"""
    began = time.monotonic()
    while not seen():
        assert time.monotonic() - began < 10 * VISIBLE_S, "never seen"
        time.sleep(0.02)
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("path", "body", "shown"),
    [("/prices", OFFER, QUOTE), ("/models/import", POSTED, "/models/{}")],
    ids=["price", "model"],
)
def test_what_one_replica_writes_the_other_shows_within_two_seconds(
    replicas: tuple[Client, Client], admin: dict[str, str], path: str, body: Any, shown: str
) -> None:
    first, second = replicas
    response = first.post(path, json=body, headers=admin)
    assert response.status_code == 201, response.text
    url = shown.format(response.json()["id"])
    assert first.get(url).status_code == 200, "the replica that wrote shows it at once"
    assert seen_after_s(lambda: second.get(url).status_code == 200) < VISIBLE_S
    assert second.get(url).json() == first.get(url).json()


def sells(replica: Client, names: set[str]) -> bool:
    return names <= {item["provider"] for item in replica.get("/prices").json()["items"]}


def test_replicas_that_write_at_once_both_keep_what_they_wrote(
    replicas: tuple[Client, Client], admin: dict[str, str]
) -> None:
    for n, replica in enumerate(replicas):
        offer = {**OFFER, "provider": f"Seller {n}"}
        assert replica.post("/prices", json=offer, headers=admin).status_code == 201
    names = {"Seller 0", "Seller 1"}
    for replica in replicas:
        seen_after_s(partial(sells, replica, names))


def test_reads_do_not_wait_for_a_writer(replicas: tuple[Client, Client], database_url: str) -> None:
    engine = make_engine(database_url)
    with writing(engine) as connection:
        if connection.dialect.name == POSTGRESQL:
            connection.execute(text("LOCK TABLE revision, offer_price IN SHARE ROW EXCLUSIVE MODE"))
        connection.execute(text("UPDATE offer_price SET usd_per_gpu_hour = usd_per_gpu_hour"))
        began = time.monotonic()
        for replica in replicas:
            for url in ("/prices?limit=5", "/readyz", "/quote?model=llama-3-70b&gpu=h100&ctx=4096"):
                assert replica.get(url).status_code == 200
        # Longer than a look for a new revision takes to come round.
        time.sleep(1.2)
        assert all(replica.get("/readyz").json()["database_reachable"] for replica in replicas)
        assert time.monotonic() - began < WRITER_HOLDS_S
    engine.dispose()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/prices", {**OFFER, "gpu": "h1000"}),
        ("/prices", {**OFFER, "prices": [{"first_day": "2026-11-20", "usd_per_gpu_hour": "-1"}]}),
        ("/prices/nobody", {"prices": OFFER["prices"], "source": OFFER["source"]}),
        ("/models/import", {**POSTED, "config": {"model_type": "no-such"}}),
    ],
)
def test_a_bad_body_changes_nothing_anywhere(
    replicas: tuple[Client, Client], admin: dict[str, str], database_url: str, path: str, body: Any
) -> None:
    first, _ = replicas
    assert first.post(path, json=body, headers=admin).status_code in (400, 404, 422)
    engine = make_engine(database_url)
    assert CatalogRepository(engine).newest_revision() == 1
    engine.dispose()


def test_a_past_quote_says_the_same_after_a_price_of_a_day_before_it_was_loaded(
    replicas: tuple[Client, Client], admin: dict[str, str]
) -> None:
    first, second = replicas
    before = first.get(REFERENCE).json()
    newest = REFERENCE.replace("&revision=1", "")
    assert first.get(newest).json()["prices"] == before["prices"]
    back_dated = {**OFFER, "prices": [{"first_day": "2026-10-01", "usd_per_gpu_hour": "0.10"}]}
    assert first.post("/prices", json=back_dated, headers=admin).status_code == 201
    assert first.get(newest).json()["prices"] != before["prices"]
    for replica in (first, second):
        assert replica.get(REFERENCE).json() == before
