"""What an owner negotiated: used in that owner's answers, and as if it were not there in everybody else's."""

import io
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from litestar.testing import TestClient

from costsvc.app import create_app
from costsvc.db.audit import audit_entries
from costsvc.db.engine import make_engine
from costsvc.db.keys import KeyRepository
from costsvc.db.private_prices import MAX_OFFERS
from tests.api.conftest import TODAY, Client, settings_for

SOURCE = {"title": "Our contract of May", "kind": "vendor"}
OFFER = {
    "provider": "Our Seller",
    "gpu": "h100",
    "market": "on-demand",
    "basis": "per-gpu",
    "prices": [{"first_day": "2024-05-01", "usd_per_gpu_hour": "1.11"}],
    "source": SOURCE,
    "private": True,
}
ID = "private/our-seller/h100-sxm/on-demand/1x"
ASKED = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192}
QUOTE = "model=llama-3-70b&gpu=h100&ctx=8192"
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
    f"/frontier?{QUOTE}",
    f"/curve?{QUOTE}",
    f"/what-if?{QUOTE}",
    f"/launch-check?{QUOTE}&rps=5",
    "/gpus",
    "/gpus.csv",
    "/gpus.xml",
    "/gpus.xlsx",
    "/gpus/h100",
    "/prices",
    "/prices?market=on-demand&gpu=h100",
    "/prices.csv",
    "/prices.xml",
    "/prices.xlsx",
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
# A look takes some milliseconds, and the replica looks 20 times a second.
MOST_LOOKS = 1000
Headers = dict[str, str]
KeyOf = Callable[..., Headers]


@pytest.fixture(scope="module")
def database(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one owner negotiated one price, which nothing below changes."""
    path = tmp_path_factory.mktemp("negotiated") / "costsvc.db"
    shutil.copy(small, path)
    return path


def key(path: Path, owner: str, scope: Any = "read") -> Headers:
    engine = make_engine(f"sqlite:///{path}")
    secret, _ = KeyRepository(engine).create(scope=scope, label="tests", owner=owner, author="tests")
    engine.dispose()
    return {"X-API-Key": secret}


@pytest.fixture(scope="module")
def client(database: Path) -> Iterator[Client]:
    with TestClient(create_app(settings_for(database), today=lambda: TODAY)) as client:
        yield client


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
    """Every call: by everybody before the price was written, and by each asker after."""
    askers = {
        "everybody": {},
        "another owner": key(database, "another", "admin"),
        "owner": key(database, "finance"),
    }
    before = [ask(client, call, {}) for call in CALLS]
    response = client.post("/prices", json=OFFER, headers=key(database, "finance", "catalog-write"))
    assert response.status_code == 201, response.text
    return {
        "before": before,
        **{who: [ask(client, call, headers) for call in CALLS] for who, headers in askers.items()},
    }


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[str(call) for call in CALLS])
def test_nobody_else_sees_any_difference(answers: Answers, number: int) -> None:
    assert answers["everybody"][number] == answers["before"][number]
    status, content, headers = answers["another owner"][number]
    public = answers["before"][number]
    assert (status, content) == public[:2]
    said = headers.get("cache-control", "").replace("private", "public")
    assert {**headers, "cache-control": said} == {**public[2], "cache-control": said}


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[str(call) for call in CALLS])
def test_the_owner_sees_it_in_every_route_and_format(answers: Answers, number: int) -> None:
    (_, content, headers), (_, public, others) = answers["owner"][number], answers["everybody"][number]
    assert content != public
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


@pytest.fixture
def owner() -> str:
    """An owner whom no other test knows: owners do not see each other, so tests may share a service."""
    return f"finance {uuid4().hex}"


@pytest.fixture
def buyer(database: Path, owner: str) -> Headers:
    return key(database, owner, "catalog-write")


def gpu_price(client: Client, headers: Headers, more: str = "") -> dict[str, Any]:
    response = client.get(f"/quote?{QUOTE}{more}", headers=headers)
    assert response.status_code == 200, response.text
    return dict(response.json()["cost"]["gpu_price"])


def test_the_owners_quotes_use_it_and_say_so_however_old_the_contract_is(
    client: Client, buyer: Headers
) -> None:
    client.post("/prices", json=OFFER, headers=buyer)
    price = gpu_price(client, buyer)
    assert (price["usd_per_gpu_hour"], price["negotiated"]) == ("1.11000000", True)
    assert "negotiated by the key's owner" in price["basis"]
    made = client.get(f"/quote?{QUOTE}", headers=buyer).json()
    assert made["private_revision"] == 1
    assert [one["title"] for one in made["sources"] if "gpu_price" in one["covers"]] == [SOURCE["title"]]
    assert "negotiated" not in gpu_price(client, buyer, "&market=spot"), "nothing was negotiated there"


def test_a_key_may_come_in_the_query_of_a_read(client: Client, buyer: Headers) -> None:
    client.post("/prices", json=OFFER, headers=buyer)
    assert gpu_price(client, {}, f"&api_key={buyer['X-API-Key']}")["negotiated"]


def test_a_price_is_in_force_until_the_next_and_null_ends_the_offer(client: Client, buyer: Headers) -> None:
    client.post("/prices", json=OFFER, headers=buyer)
    more = {
        "prices": [
            {"first_day": "2026-01-01", "usd_per_gpu_hour": "0.99"},
            {"first_day": "2026-06-01", "ended": True},
        ],
        "source": SOURCE,
    }
    response = client.post(f"/prices/{ID}", json=more, headers=buyer)
    assert (response.status_code, response.json()["private_revision"]) == (201, 2), response.text
    assert gpu_price(client, buyer, "&as_of=2026-05-31")["usd_per_gpu_hour"] == "0.990000000"
    assert "negotiated" not in gpu_price(client, buyer, "&as_of=2026-06-01")
    history = client.get(f"/prices/{ID}", headers=buyer).json()["history"]
    assert [row["usd_per_gpu_hour"] for row in history] == ["1.110000", "0.990000", None]


def test_a_wrong_price_is_corrected_and_an_older_revision_still_answers(
    client: Client, buyer: Headers
) -> None:
    client.post("/prices", json=OFFER, headers=buyer)
    right = {"prices": [{"first_day": "2024-05-01", "usd_per_gpu_hour": "2.22"}], "source": SOURCE}
    client.post(f"/prices/{ID}", json=right, headers=buyer)
    assert gpu_price(client, buyer)["usd_per_gpu_hour"] == "2.22000000"
    assert gpu_price(client, buyer, "&private_revision=1")["usd_per_gpu_hour"] == "1.11000000"
    missing = client.get(f"/quote?{QUOTE}&private_revision=3", headers=buyer)
    assert (missing.status_code, missing.json()["nearest"]) == (404, ["2"])


def test_the_same_again_is_no_revision(client: Client, buyer: Headers) -> None:
    client.post("/prices", json=OFFER, headers=buyer)
    same = {"prices": OFFER["prices"], "source": SOURCE}
    assert client.post(f"/prices/{ID}", json=same, headers=buyer).json()["private_revision"] == 1


@pytest.mark.parametrize("revision", [1, 9])
def test_a_private_revision_needs_the_key_of_its_owner(
    client: Client, database: Path, buyer: Headers, revision: int
) -> None:
    client.post("/prices", json=OFFER, headers=buyer)
    nobody = client.get(f"/quote?{QUOTE}&private_revision={revision}")
    assert (nobody.status_code, nobody.json()["errors"][0]["field"]) == (400, "private_revision")
    other = client.get(f"/quote?{QUOTE}&private_revision={revision}", headers=key(database, "another"))
    assert other.status_code == 404


def test_rows_answer_from_one_private_revision(client: Client, buyer: Headers) -> None:
    client.post("/prices", json=OFFER, headers=buyer)
    rows = [{**ASKED, "private_revision": n} for n in (1, 2)]
    items = client.post("/quotes/batch", json={"rows": rows}, headers=buyer).json()["items"]
    assert items[0]["error"] == ""
    assert "private revision 1" in items[1]["error"]


@pytest.mark.parametrize("headers", [{}, {"X-API-Key": "costsvc_0_0"}])
def test_an_offer_is_not_found_without_its_owners_key(
    client: Client, database: Path, buyer: Headers, headers: Headers
) -> None:
    client.post("/prices", json=OFFER, headers=buyer)
    more = {"prices": [{"first_day": "2026-01-01", "usd_per_gpu_hour": "9"}], "source": SOURCE}
    asked = client.get(f"/prices/{ID}", headers=headers)
    assert asked.status_code == (401 if headers else 404)
    assert "private/" not in asked.json()["detail"].removeprefix(f"No offer '{ID}'")
    thief = client.post(f"/prices/{ID}", json=more, headers=key(database, "another", "admin"))
    assert thief.status_code == 404
    assert client.get("/prices?provider=Our+Seller").status_code == 404, "the name is not given away"
    assert client.get(f"/quote?{QUOTE}&provider=Our+Seller").status_code == 404


def test_a_key_that_is_not_valid_gets_no_public_answer_in_its_place(client: Client) -> None:
    response = client.get(f"/quote?{QUOTE}", headers={"X-API-Key": "costsvc_0_0"})
    assert (response.status_code, response.json()["type"]) == (401, "/problems/not-authorized")


def test_keys_of_nobody_do_not_share(client: Client, database: Path) -> None:
    first, second = (key(database, "", "catalog-write") for _ in range(2))
    client.post("/prices", json=OFFER, headers=first)
    assert gpu_price(client, first)["negotiated"]
    assert "negotiated" not in gpu_price(client, second)


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"gpu": "h1000"}, 404, "No gpu 'h1000'"),
        ({"private": "yes"}, 400, "private"),
        ({"prices": [{"first_day": "2024-05-01", "usd_per_gpu_hour": "-1"}]}, 400, "usd_per_gpu_hour"),
        ({"prices": [{"first_day": "2024-05-01", "usd_per_gpu_hour": 1.5}]}, 400, "write money in quotes"),
        ({"prices": []}, 400, "prices"),
    ],
)
def test_a_bad_body_changes_nothing(
    client: Client, buyer: Headers, changes: dict[str, Any], status: int, words: str
) -> None:
    response = client.post("/prices", json={**OFFER, **changes}, headers=buyer)
    assert response.status_code == status, response.text
    assert words in response.json()["detail"]
    assert "negotiated" not in gpu_price(client, buyer)


def test_two_prices_of_one_day_are_refused(client: Client, buyer: Headers) -> None:
    client.post("/prices", json=OFFER, headers=buyer)
    day = {"first_day": "2026-01-01", "usd_per_gpu_hour": "1"}
    response = client.post(f"/prices/{ID}", json={"prices": [day, day], "source": SOURCE}, headers=buyer)
    assert (response.status_code, response.json()["errors"][0]["field"]) == (400, "prices")


def test_an_offer_is_made_once(client: Client, buyer: Headers) -> None:
    first, second = (client.post("/prices", json=OFFER, headers=buyer) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 400)
    assert f"POST /prices/{ID}" in second.json()["detail"]
    assert first.headers["Location"] == f"/prices/{ID}"


def test_a_read_key_may_not_negotiate(client: Client, database: Path) -> None:
    assert client.post("/prices", json=OFFER, headers=key(database, "finance")).status_code == 403


def test_each_write_is_on_record_with_what_was_there_before(
    client: Client, database: Path, owner: str, buyer: Headers
) -> None:
    client.post("/prices", json=OFFER, headers=buyer)
    right = {"prices": [{"first_day": "2024-05-01", "usd_per_gpu_hour": "2.22"}], "source": SOURCE}
    client.post(f"/prices/{ID}", json=right, headers=buyer)
    engine = make_engine(f"sqlite:///{database}")
    newest, first = audit_entries(engine)[:2]
    engine.dispose()
    assert first.before is None
    assert newest.before == first.after
    assert newest.before is not None
    assert newest.after is not None
    prices = [one["offer"]["prices"][0]["usd_per_gpu_hour"] for one in (newest.before, newest.after)]
    assert prices == ["1.11", "2.22"]
    assert (newest.action, newest.subject) == (
        f"POST /prices/{ID}",
        f"{ID} of owner {owner}, private revision 2",
    )
    assert newest.actor.endswith("(tests)")


def test_another_replica_sees_a_write_at_its_next_look(
    client: Client, database: Path, buyer: Headers
) -> None:
    polling = settings_for(database).model_copy(update={"poll_s": 0.05})
    with TestClient(create_app(polling, today=lambda: TODAY)) as replica:
        assert "negotiated" not in gpu_price(replica, buyer)
        client.post("/prices", json=OFFER, headers=buyer)
        seen = (gpu_price(replica, buyer) for _ in range(MOST_LOOKS))
        assert any("negotiated" in price for price in seen)


def test_a_stored_quote_made_with_it_is_its_owners_alone(
    client: Client, database: Path, buyer: Headers
) -> None:
    admin = key(database, "another", "admin")
    public = client.post("/quotes", json=ASKED, headers=buyer).json()["id"]
    client.post("/prices", json=OFFER, headers=buyer)
    made = client.post("/quotes", json=ASKED, headers=buyer).json()
    assert made["quote"]["cost"]["gpu_price"]["negotiated"]
    assert made["asked"]["private_revision"] == 1
    assert client.post("/quote", json={**made["asked"], "trace": True}, headers=buyer).json() == made["quote"]
    for suffix in ("", ".csv", ".xml", ".xlsx", ".txt?field=output"):
        assert client.get(f"/quotes/{made['id']}{suffix}", headers=buyer).status_code == 200
        assert client.get(f"/quotes/{made['id']}{suffix}", headers=admin).status_code == 404
        assert client.get(f"/quotes/{public}{suffix}", headers=admin).status_code == 200
    for suffix in ("", ".csv", ".xml"):
        assert made["id"] in client.get(f"/quotes{suffix}", headers=buyer).text
        assert made["id"] not in client.get(f"/quotes{suffix}", headers=admin).text
    path = f"/quotes/{public}/compare/{made['id']}"
    assert client.get(path, headers=admin).status_code == 404
    explained = client.get(path, headers=buyer).json()
    assert "GPU price" in [step["cause"] for step in explained["steps"]]


def test_an_owner_may_have_so_many_offers(
    client: Client, buyer: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_OFFERS >= 1000
    monkeypatch.setattr("costsvc.db.private_prices.MAX_OFFERS", 1)
    client.post("/prices", json=OFFER, headers=buyer)
    response = client.post("/prices", json={**OFFER, "provider": "Another"}, headers=buyer)
    assert (response.status_code, "as many" in response.json()["detail"]) == (400, True)


def test_who_wrote_private_prices_first_moves_no_public_revision(client: Client, buyer: Headers) -> None:
    before = client.get("/readyz").json()
    response = client.post("/prices", json=OFFER, headers=buyer)
    assert response.json()["catalog_revision"] == before["catalog_revision"]
    assert client.get("/readyz").json()["catalog_revision"] == before["catalog_revision"]
