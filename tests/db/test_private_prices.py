"""Negotiated prices: revisions of each owner's own, kept in both databases, and views that share the rest."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from sqlalchemy import Engine

from costsvc.db.entries import DatedPrice, Offer, PrivateOffer, Source
from costsvc.db.private_book import PrivateBook
from costsvc.db.private_prices import PrivateRepository
from costsvc.db.snapshot import Catalog
from costsvc.errors import NoPriceInForce, NotInCatalog
from tests.db.examples import CONTENT

GPU = CONTENT.gpus[0].id
OFFER = PrivateOffer(
    offer=Offer(
        id="private/x",
        provider="X",
        gpu_id=GPU,
        market="on-demand",
        prices=(
            DatedPrice(first_day=date(2020, 1, 1), usd_per_gpu_hour=Decimal("1.10"), source_id="private/s"),
            DatedPrice(first_day=date(2026, 1, 1), usd_per_gpu_hour=None, source_id="private/s"),
        ),
    ),
    sources=(Source(id="private/s", title="Contract", kind="vendor", accessed=date(2020, 1, 1)),),
)


@pytest.fixture
def private(engine: Engine) -> PrivateRepository:
    return PrivateRepository(engine)


def put(private: PrivateRepository, owner: str, offer: PrivateOffer = OFFER) -> int:
    return private.store(owner, offer.offer.id, lambda _: offer, author="me", action="test")


def priced(usd: str) -> PrivateOffer:
    price = replace(OFFER.offer.prices[0], usd_per_gpu_hour=Decimal(usd))
    return replace(OFFER, offer=replace(OFFER.offer, prices=(price,)))


def test_what_was_stored_comes_back_equal_at_every_revision(private: PrivateRepository) -> None:
    assert [put(private, "a"), put(private, "a"), put(private, "a", priced("2"))] == [1, 1, 2]
    assert private.load("a", 1).offers == (OFFER,)
    assert private.load("a", 2).offers == (priced("2"),)
    with pytest.raises(NotInCatalog, match="1 to 2"):
        private.load("a", 3)


def test_owners_count_their_own_revisions(private: PrivateRepository) -> None:
    first = put(private, "a")
    known = private.newest()
    assert (first, put(private, "b"), put(private, "b", priced("2"))) == (1, 1, 2)
    assert private.newest() > known
    assert private.changed_since(known) == {"b": 2}
    assert private.changed_since(0) == {"a": 1, "b": 2}
    with pytest.raises(NotInCatalog):
        private.load("c", 1)


def test_a_change_that_fails_stores_nothing(private: PrivateRepository) -> None:
    def fail(_: PrivateOffer | None) -> PrivateOffer:
        raise NotInCatalog("offer", "x", [])

    with pytest.raises(NotInCatalog):
        private.store("a", "private/x", fail, author="me", action="test")
    assert private.newest() == 0


def test_a_view_shares_all_but_the_owners_prices(private: PrivateRepository) -> None:
    put(private, "a")
    book, catalog = PrivateBook(private), Catalog(CONTENT, 1)
    book.refresh()
    view = book.seen(catalog, "a")
    assert book.seen(catalog, "a") is view
    assert book.seen(catalog, "b") is catalog
    assert view.models is catalog.models
    assert catalog.private is None
    assert view.fingerprint != catalog.fingerprint
    price = view.reference_price(GPU, date(2025, 12, 31))
    assert (price.usd_per_gpu_hour, price.negotiated) == (Decimal("1.10"), True)
    with pytest.raises(NoPriceInForce):
        view.reference_price(GPU, date(2025, 12, 31), "spot", "X")


def test_a_write_is_seen_at_the_next_look_and_another_database_starts_anew(
    private: PrivateRepository,
) -> None:
    put(private, "a")
    book, catalog = PrivateBook(private), Catalog(CONTENT, 1)
    book.refresh()
    before = book.seen(catalog, "a")
    put(private, "a", priced("2"))
    book.refresh()
    assert book.seen(catalog, "a").private_revision == 2
    assert book.seen(catalog, "a", revision=1).fingerprint == before.fingerprint
    book._loader = _Empty()  # type: ignore[assignment]
    book.refresh()
    assert book.seen(catalog, "a") is catalog


class _Empty:
    """A database that nobody wrote to."""

    def newest(self) -> int:
        return 0

    def changed_since(self, newest: int) -> dict[str, int]:
        return {}

    def load(self, owner: str, revision: int) -> None:
        raise AssertionError("there is nothing to load")
