"""Who is let in: keys, limits and room, and what each refusal says."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from litestar.testing import TestClient

from costsvc.api.door.door import HEAVY_COST
from costsvc.app import create_app
from costsvc.db.engine import make_engine
from costsvc.db.keyring import KeyRing
from costsvc.db.keys import SCOPES, ApiKey, KeyRepository
from costsvc.settings import Settings
from tests.api.conftest import TODAY, Client, MakeKey

QUOTE = "/quote?model=llama-3-70b&gpu=h100&ctx=8192"
COMPARE = "/compare?model=llama-3-70b&gpu=h100&ctx=8192"
PATIENCE_S = 10


@contextmanager
def served(database: Path, **settings: object) -> Iterator[Client]:
    given = {"database_url": f"sqlite:///{database}", "rate_per_s": 0, **settings}
    app = create_app(Settings.model_validate(given), today=lambda: TODAY)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def test_where_keys_are_required_only_pages_and_health_are_open(database: Path, make_key: MakeKey) -> None:
    with served(database, keys="required") as client:
        for url in ("/", "/launch", "/healthz", "/readyz", "/docs", "/problems", "/problems/not-authorized"):
            assert client.get(url).status_code == 200, url
        for url in (QUOTE, "/models", "/prices", COMPARE, "/metrics", "/quote.csv?model=x"):
            refused = client.get(url)
            assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (
                401,
                'Bearer realm="costsvc"',
            )
            assert "costsvc keys create" in refused.json()["detail"]
        assert client.post("/quote", json={}).status_code == 401
        assert client.options("/quote").status_code == 204
        key = make_key(database, "read")
        for given in ({"headers": {"X-API-Key": key}}, {"headers": {"Authorization": f"bearer {key}"}}):
            assert client.get(QUOTE, **given).status_code == 200  # type: ignore[arg-type]
        assert client.get(f"{QUOTE}&api_key={key}").status_code == 200
        assert client.get("/metrics", headers={"X-API-Key": key}).status_code == 200


@pytest.mark.parametrize("shown", ["nonsense", "costsvc_00_11", "x" * 5000, "\u00e9"])
def test_a_key_that_is_not_valid_opens_no_read_rather_than_a_public_answer(
    database: Path, shown: str
) -> None:
    with served(database) as client:
        by_header = client.get(QUOTE, headers={b"X-API-Key": shown.encode("latin-1")})
        by_query = client.get(QUOTE, params={"api_key": shown})
    for response in (by_header, by_query):
        assert response.status_code == 401, response.text
        assert "not known" in response.json()["detail"]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_opens_what_it_names_and_what_is_below(database: Path, make_key: MakeKey, scope: Any) -> None:
    headers = {"X-API-Key": make_key(database, scope)}
    reached = SCOPES.index(scope)
    with served(database) as client:
        assert client.get("/quotes", headers=headers).status_code == 200
        # Beyond the key the body is looked at, and these are none.
        for url, needed in (
            ("/quotes", "quote"),
            ("/prices", "catalog-write"),
            ("/profiles", "catalog-write"),
        ):
            response = client.post(url, json={"no": "such"}, headers=headers)
            allowed = reached >= SCOPES.index(needed)
            assert response.status_code == (400 if allowed else 403), response.text
            if not allowed:
                assert f"scope {scope}, which does not allow this" in response.json()["detail"]
                assert needed in response.json()["detail"]


def test_a_key_revoked_elsewhere_opens_nothing_after_a_look(
    database: Path, make_key: MakeKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("costsvc.db.keyring.LONGEST_PAUSE_S", 0.02)
    secret = make_key(database, "read")
    with served(database) as client:
        assert client.get("/quotes", headers={"X-API-Key": secret}).status_code == 200
        engine = make_engine(f"sqlite:///{database}")
        KeyRepository(engine).revoke(secret.split("_")[1], author="tests")
        engine.dispose()
        deadline = time.monotonic() + PATIENCE_S
        while (answer := client.get("/quotes", headers={"X-API-Key": secret})).status_code == 200:
            assert time.monotonic() < deadline
        assert "was revoked" in answer.json()["detail"]


def test_a_key_is_looked_up_once(database: Path, make_key: MakeKey, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    verify = KeyRing.verify

    def counted(ring: KeyRing, text: str) -> ApiKey:
        asked.append(text)
        return verify(ring, text)

    monkeypatch.setattr(KeyRing, "verify", counted)
    secret = make_key(database, "read")
    with served(database) as client:
        for _ in range(5):
            assert client.get(QUOTE, headers={"X-API-Key": secret}).status_code == 200
    assert asked == [secret]


def test_a_sheet_of_500_cells_passes_at_once_and_abuse_does_not(database: Path) -> None:
    with served(database, rate_per_s=50) as client:
        # LibreOffice asks three times for a cell.
        for _ in range(500):
            for method in ("OPTIONS", "HEAD", "GET"):
                assert client.request(method, "/gpus").status_code in (200, 204)
    with served(database, rate_burst=100, rate_per_s=0.01) as client:
        statuses = [client.get("/gpus").status_code for _ in range(101)]
        assert statuses == [200] * 100 + [429]
        refused = client.get("/gpus")
        body = refused.json()
        assert (body["type"], body["burst"], body["per_s"]) == ("/problems/rate-limited", 100, 0.01)
        assert "One address may make 100 requests at once and 0.01 a second" in body["detail"]
        assert refused.headers["Retry-After"] == str(body["retry_after_s"]) == "100"
        assert refused.headers["RateLimit-Policy"] == '"caller";q=100;w=10000'
        assert refused.headers["RateLimit"] == '"caller";r=0;t=100'
        for url in ("/healthz", "/readyz", "/metrics"):
            assert client.get(url).status_code == 200


def test_a_key_has_a_limit_of_its_own_and_guesses_use_up_that_of_their_address(
    database: Path, make_key: MakeKey
) -> None:
    headers = {"X-API-Key": make_key(database, "read")}
    with served(database, rate_burst=100, rate_per_s=0.01) as client:
        assert client.get("/gpus", headers=headers).status_code == 200
        guesses = [client.get("/gpus", headers={"X-API-Key": f"guess{n}"}).status_code for n in range(100)]
        assert guesses == [401] * 99 + [429]
        assert client.get("/gpus").status_code == 429
        assert client.get("/gpus", headers=headers).status_code == 200


def test_a_long_answer_counts_for_many(database: Path) -> None:
    with served(database, rate_burst=100, rate_per_s=0.01) as client:
        statuses = [client.get(COMPARE).status_code for _ in range(6)]
    assert statuses == [200] * (100 // HEAVY_COST) + [429]


@pytest.mark.parametrize(
    ("settings", "url", "words"),
    [
        ({"heavy_running": 1, "heavy_waiting": 0}, COMPARE, "1 long answers at a time"),
        ({"most_requests": 1}, "/gpus", "1 request at a time"),
    ],
)
def test_where_no_more_may_be_inside_a_request_is_told_to_come_back(
    database: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, object], url: str, words: str
) -> None:
    begun, done = Event(), Event()

    def held(*_: object) -> dict[str, object]:
        begun.set()
        done.wait(PATIENCE_S)
        return {"items": []}

    monkeypatch.setattr("costsvc.api.comparisons.compare", held)
    with served(database, **settings) as client, ThreadPoolExecutor() as threads:
        first = threads.submit(client.get, COMPARE)
        assert begun.wait(PATIENCE_S)
        refused = client.get(url)
        # What watches the service, and quotes where only long answers are too many, are answered all the same.
        assert client.get("/healthz").status_code == 200
        done.set()
        assert first.result().status_code == 200
        assert client.get(url).status_code == 200
    assert (refused.status_code, refused.json()["type"]) == (503, "/problems/overloaded")
    assert words in refused.json()["detail"]
    assert int(refused.headers["Retry-After"]) >= 1


def test_what_a_key_looks_like_is_shown_nowhere(database: Path, make_key: MakeKey) -> None:
    secret = make_key(database, "read")
    tail = secret.split("_", 2)[2]
    with served(database, access_log=True) as client:
        for url in (
            f"/models/{secret}",
            f"{QUOTE}&{secret}=1",
            f"/quote?model={secret}&gpu=h100&ctx=8192",
            f"/nowhere/{secret}",
            f"{QUOTE}&api_key={secret}x",
        ):
            response = client.get(url)
            assert response.status_code >= 400
            assert tail not in response.text, response.text
            assert all(tail not in value for value in response.headers.values())
