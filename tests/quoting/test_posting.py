"""Prices that arrive by a call: checked like files, and not lost when the files are loaded anew."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from costsvc.db.entries import CatalogContent
from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest, NotInCatalog
from costsvc.quoting.posting import (
    PostedOffer,
    PostedPrices,
    keeping_posted,
    parse_body,
    with_offer,
    with_prices,
)
from tests.db.examples import CONTENT, DAY, offer, with_offers

CATALOG = Catalog(CONTENT, 7)
SOURCE = {"title": "Our contract", "kind": "vendor", "accessed": "2026-11-20"}
OFFER = {
    "provider": "Cheap Cloud",
    "gpu": "h100",
    "market": "on-demand",
    "basis": "whole-instance",
    "gpus_per_instance": 8,
    "prices": [{"first_day": "2026-11-20", "usd_per_instance_hour": "16.00"}],
    "source": SOURCE,
}
ID = "posted/cheap-cloud/h100-sxm/on-demand/8x"
AWS = "aws-ec2-h100-sxm-on-demand-none"


def posted_offer(**changes: Any) -> PostedOffer:
    return parse_body(PostedOffer, json.dumps({**OFFER, **changes}).encode())


def posted_prices(*prices: dict[str, Any]) -> PostedPrices:
    return parse_body(PostedPrices, json.dumps({"prices": prices, "source": SOURCE}).encode())


def prices_of(content: CatalogContent, id: str) -> dict[date, Decimal | None]:
    found = next(offer for offer in content.offers if offer.id == id)
    return {price.first_day: price.usd_per_gpu_hour for price in found.prices}


def test_a_posted_offer_votes_in_the_reference_price() -> None:
    content = with_offer(CATALOG, posted_offer())
    assert prices_of(content, ID) == {date(2026, 11, 20): Decimal(2)}
    reference = Catalog(content, 8).reference_price("h100-sxm", DAY)
    assert [vote.provider for vote in reference.votes] == ["AWS EC2", "Cheap Cloud"]


def test_a_posted_offer_keeps_where_it_was_read() -> None:
    content = with_offer(CATALOG, posted_offer())
    catalog = Catalog(content, 8)
    found = next(offer for offer in content.offers if offer.id == ID)
    assert catalog.source(found.prices[0].source_id).title == "Our contract"


def test_a_provider_of_the_catalog_is_recognised_and_does_not_vote_twice() -> None:
    content = with_offer(CATALOG, posted_offer(provider="aws  ec2"))
    assert Catalog(content, 8).reference_price("h100-sxm", DAY).providers == 1


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"market": "cheap"}, "market is 'cheap'; it should be 'on-demand'"),
        ({"prices": []}, "prices"),
        ({"prices": [{"first_day": "2026-11-20", "usd_per_gpu_hour": 2.0}]}, "write money in quotes"),
        ({"prices": [{"first_day": "2026-11-20", "usd_per_gpu_hour": "-1"}]}, "greater than 0"),
        ({"prices": [{"first_day": "soon", "usd_per_gpu_hour": "2"}]}, "first_day is 'soon'"),
        ({"source": {"title": "hearsay", "kind": "rumour"}}, "source.kind is 'rumour'"),
        ({"colour": "blue"}, "colour"),
        ({"basis": "gpu-component-only"}, "states its excluded_reason"),
    ],
)
def test_an_offer_is_held_against_the_schema_of_the_files(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidRequest, match=complaint):
        posted_offer(**changes)


def test_an_unknown_gpu_names_the_nearest() -> None:
    with pytest.raises(NotInCatalog, match="No gpu 'h101' in the catalog"):
        with_offer(CATALOG, posted_offer(gpu="h101"))


def test_the_same_offer_twice_is_refused_with_the_way_to_add_a_price() -> None:
    content = with_offer(CATALOG, posted_offer())
    with pytest.raises(InvalidRequest, match=f"POST /prices/{ID} adds a price"):
        with_offer(Catalog(content, 8), posted_offer())


def test_providers_that_an_id_cannot_tell_apart_have_offers_of_their_own() -> None:
    content = CONTENT
    for provider in ("+1+1", "-1+1", "+1", "Café", "Caf", "日本", "한국"):
        content = with_offer(Catalog(content, 8), posted_offer(provider=provider))
    posted = {offer.id: offer.provider for offer in content.offers if offer.id.startswith("posted/")}
    assert len(posted) == 7
    assert posted["posted/caf/h100-sxm/on-demand/8x"] == "Caf"
    assert not any("//" in id for id in posted)


def test_a_posted_price_holds_from_its_day_and_leaves_the_past_alone() -> None:
    content = with_prices(CATALOG, AWS, posted_prices({"first_day": "2026-11-01", "usd_per_gpu_hour": "5"}))
    catalog = Catalog(content, 8)
    assert catalog.reference_price("h100-sxm", DAY).usd_per_gpu_hour == 5
    assert catalog.reference_price("h100-sxm", date(2026, 10, 31)).highest_usd_per_gpu_hour == Decimal(
        "6.880000001"
    )


def test_an_offer_ends_by_a_posted_price() -> None:
    content = with_prices(CATALOG, AWS, posted_prices({"first_day": "2026-11-01", "ended": True}))
    assert prices_of(content, AWS)[date(2026, 11, 1)] is None


def test_a_second_price_of_one_day_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="two prices from 2026-06-15"):
        with_prices(CATALOG, AWS, posted_prices({"first_day": "2026-06-15", "usd_per_gpu_hour": "5"}))


def test_loading_the_files_anew_keeps_what_was_posted() -> None:
    first = with_offer(CATALOG, posted_offer())
    stored = with_prices(
        Catalog(first, 8), AWS, posted_prices({"first_day": "2026-11-01", "usd_per_gpu_hour": "5"})
    )
    changed_files = replace(CONTENT, api_prices=())
    kept = keeping_posted(changed_files, stored)
    assert kept.api_prices == ()
    assert prices_of(kept, ID) == {date(2026, 11, 20): Decimal(2)}
    assert prices_of(kept, AWS)[date(2026, 11, 1)] == 5
    assert {source.id for source in kept.sources} == {source.id for source in stored.sources}


def test_a_price_that_the_files_have_meanwhile_replaces_the_posted_one() -> None:
    day = {"first_day": "2026-11-01", "usd_per_gpu_hour": "5"}
    stored = with_prices(CATALOG, AWS, posted_prices(day))
    files = with_offers(CONTENT, offer("AWS EC2", [(date(2026, 11, 1), "4")]))
    kept = keeping_posted(files, stored)
    assert prices_of(kept, AWS) == {date(2026, 11, 1): Decimal(4)}
    assert [source.id for source in kept.sources] == [source.id for source in files.sources]


def test_a_posted_price_of_an_offer_that_left_the_files_leaves_with_it() -> None:
    day = {"first_day": "2026-11-01", "usd_per_gpu_hour": "5"}
    stored = with_prices(CATALOG, AWS, posted_prices(day))
    assert keeping_posted(with_offers(CONTENT), stored).offers == ()
