"""What an owner negotiated: written by that owner's keys, corrected, kept on record, and found by nobody else."""

from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from costsvc.app import create_app
from costsvc.db.audit import audit_entries
from costsvc.db.engine import make_engine
from costsvc.db.private_prices import MAX_OFFERS
from tests.api.conftest import TODAY, Client, settings_for
from tests.api.negotiated.examples import ASKED, ID, OFFER, QUOTE, SOURCE, Headers, gpu_price, key

# A look takes some milliseconds, and the replica looks 20 times a second.
MOST_LOOKS = 1000


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


@pytest.mark.parametrize("more", ["", ".csv", ".xml", ".xlsx", ".txt", "?format=csv", "?as_of=2026-01-01"])
def test_no_spelling_of_its_address_shows_an_offer_to_others(
    client: Client, database: Path, buyer: Headers, more: str
) -> None:
    client.post("/prices", json=OFFER, headers=buyer)
    for asker in ({}, key(database, "another", "admin")):
        response = client.get(f"/prices/{ID}{more}", headers=asker)
        assert response.status_code in {400, 404}
        assert "1.11" not in response.text
        assert SOURCE["title"] not in response.text


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
    # Its workbook is a row: that of live formulas takes a second to write.
    asked = {**ASKED, "attribution": "step"}
    public = client.post("/quotes", json=asked, headers=buyer).json()["id"]
    client.post("/prices", json=OFFER, headers=buyer)
    made = client.post("/quotes", json=asked, headers=buyer).json()
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
