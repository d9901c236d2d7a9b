"""Stored quotes in both databases."""

from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import Engine

from costsvc.db.quotes import QuoteRepository, QuoteSearch, Reader, StoredQuote
from costsvc.errors import IdempotencyConflict, NotStored

NOW = datetime(2026, 11, 29, 12, 30, 15, 123456, tzinfo=UTC)


def quote(id: str, **more: object) -> StoredQuote:
    known: dict[str, object] = {
        "id": id,
        "owner": "owner finance",
        "idempotency_key": None,
        "request_hash": "h1",
        "created_at": NOW,
        "label": "Launch 100%",
        "model_id": "llama-3-70b",
        "gpu_id": "h100-sxm",
        "as_of": date(2026, 11, 29),
        "catalog_revision": 3,
        "engine_version": "0.1.0",
        "request_usd": "0.00521612998",
    }
    return StoredQuote(**{**known, **more})  # type: ignore[arg-type]


def content(stored: StoredQuote) -> dict[str, bytes]:
    return {"json": f"{stored.id}{stored.created_at:%Y}".encode(), "xlsx": b"\x00\xff"}


@pytest.fixture
def quotes(engine: Engine) -> QuoteRepository:
    return QuoteRepository(engine, now=lambda: NOW)


def test_what_was_stored_comes_back_to_the_byte(quotes: QuoteRepository) -> None:
    stored, is_new = quotes.store(quote("a"), content)
    assert is_new
    assert quotes.content("a", "json", Reader("owner finance")) == (stored, b"a2026")
    assert quotes.content("a", "xlsx", Reader("owner sales", is_admin=True))[1] == b"\x00\xff"


def test_another_owner_finds_nothing(quotes: QuoteRepository) -> None:
    quotes.store(quote("a"), content)
    with pytest.raises(NotStored, match="No quote 'a' is kept for the owner"):
        quotes.content("a", "json", Reader("owner sales"))
    assert quotes.listed(QuoteSearch(), Reader("owner sales")) == []


def test_an_admin_reads_of_others_what_was_made_from_public_prices(quotes: QuoteRepository) -> None:
    quotes.store(quote("a"), content)
    quotes.store(quote("b", private_revision=1), content)
    admin = Reader("owner sales", is_admin=True)
    assert [one.id for one in quotes.listed(QuoteSearch(), admin)] == ["a"]
    with pytest.raises(NotStored):
        quotes.content("b", "json", admin)
    assert quotes.content("b", "json", Reader("owner finance"))[1] == b"b2026"


def test_the_same_key_stores_once_and_another_request_under_it_is_refused(quotes: QuoteRepository) -> None:
    first, _ = quotes.store(quote("a", idempotency_key="k"), content)
    assert quotes.store(quote("b", idempotency_key="k"), content) == (first, False)
    assert quotes.store(quote("c", idempotency_key="k", owner="owner sales"), content)[1]
    with pytest.raises(IdempotencyConflict, match="which is quote a"):
        quotes.store(quote("d", idempotency_key="k", request_hash="h2"), content)
    assert [one.id for one in quotes.listed(QuoteSearch(), Reader("owner finance"))] == ["a"]


def test_one_that_was_faster_with_the_same_key_wins(quotes: QuoteRepository) -> None:
    def slowly(stored: StoredQuote) -> dict[str, bytes]:
        quotes.store(quote("faster", idempotency_key="k"), content)
        return content(stored)

    stored, is_new = quotes.store(quote("slower", idempotency_key="k"), slowly)
    assert (stored.id, is_new) == ("faster", False)


@pytest.mark.parametrize(
    ("search", "found"),
    [
        (QuoteSearch(), ["c", "b", "a"]),
        (QuoteSearch(limit=2), ["c", "b"]),
        (QuoteSearch(label="LAUNCH"), ["c", "a"]),
        (QuoteSearch(label="0%"), ["a"]),
        (QuoteSearch(model_id="llama-3-8b"), ["b"]),
        (QuoteSearch(since=NOW + timedelta(hours=1)), ["c", "b"]),
        (QuoteSearch(before=NOW + timedelta(hours=1)), ["a"]),
    ],
)
def test_quotes_are_found_by_label_model_and_moment(
    engine: Engine, search: QuoteSearch, found: list[str]
) -> None:
    kept = (
        quote("a"),
        quote("b", label="Budget", model_id="llama-3-8b"),
        quote("c", label="launch 100 users"),
    )
    for hours, one in enumerate(kept):
        QuoteRepository(engine, now=lambda hours=hours: NOW + timedelta(hours=hours)).store(one, content)  # type: ignore[misc]
    assert [one.id for one in QuoteRepository(engine).listed(search, Reader("owner finance"))] == found
