"""Shipped prices: what has a vote, what has none and why, and what is unknown."""

from datetime import date
from decimal import Decimal

import pytest

from costsvc.db.entries import CatalogContent, Offer
from costsvc.db.prices import of_one_tier
from costsvc.db.snapshot import Catalog

DAY = date(2026, 11, 29)


def offers_of(content: CatalogContent, provider: str) -> list[Offer]:
    return [offer for offer in content.offers if offer.provider == provider]


def test_ids_of_offers_are_unique(content: CatalogContent) -> None:
    ids = [offer.id for offer in content.offers]
    assert len(ids) == len(set(ids))


def test_a_provider_has_one_name_whatever_lists_call_it(content: CatalogContent) -> None:
    providers = {offer.provider for offer in content.offers} | {
        price.provider for price in content.api_prices
    }
    assert {"AWS", "GCP", "Azure", "Lambda", "Verda", "Fireworks", "Together", "xAI"} <= providers
    assert providers.isdisjoint(
        {"AWS EC2", "AWS SageMaker", "fireworks_ai", "together_ai", "x-ai", "bedrock"}
    )


def test_a_component_without_its_host_has_no_vote(content: CatalogContent) -> None:
    components = [offer for offer in content.offers if offer.basis == "gpu-component-only"]
    assert len(components) > 50
    assert all(offer.excluded_reason for offer in components)


@pytest.mark.parametrize("provider", ["Vast.ai", "Akash", "Salad", "Spheron"])
def test_community_marketplaces_have_no_vote(content: CatalogContent, provider: str) -> None:
    offers = offers_of(content, provider)
    assert offers
    assert all(offer.excluded_reason for offer in offers)


def test_runpod_votes_with_its_own_halls_only(content: CatalogContent) -> None:
    voting = [offer for offer in offers_of(content, "RunPod") if offer.excluded_reason is None]
    assert voting
    assert not any("community" in (offer.notes or "") for offer in voting)


def test_undated_lists_and_prices_from_memory_have_no_vote(content: CatalogContent) -> None:
    for offer in content.offers:
        sources = {price.source_id for price in offer.prices}
        if any(source.startswith("skypilot") for source in sources):
            assert offer.excluded_reason is not None
            assert "undated" in offer.excluded_reason
        if sources & {"aws-ec2-page", "cloud-tpu-page"}:
            assert offer.excluded_reason is not None
            assert "not read again" in offer.excluded_reason


def test_a_price_observed_twice_is_one_offer_with_a_history(content: CatalogContent) -> None:
    long = [offer for offer in content.offers if len(offer.prices) > 1]
    assert long
    for offer in long:
        days = [price.first_day for price in offer.prices]
        assert days == sorted(set(days))


def test_an_instance_is_priced_per_gpu(content: CatalogContent) -> None:
    azure = next(
        offer
        for offer in offers_of(content, "Azure")
        if offer.instance_type == "Standard_ND96amsr_A100_v4" and offer.market == "reserved-1y"
    )
    assert azure.gpus_per_instance == 8
    assert azure.prices[-1].usd_per_gpu_hour == Decimal("28.2445") / 8


def test_every_price_is_positive_or_the_end_of_an_offer(content: CatalogContent) -> None:
    prices = [price.usd_per_gpu_hour for offer in content.offers for price in offer.prices]
    assert all(usd is None or 0 < usd < 50 for usd in prices)


@pytest.mark.parametrize(
    ("gpu", "lowest", "highest"),
    [("h100-sxm", 2, 6), ("h200-sxm", 2, 7), ("b200-sxm", 3, 9), ("a100-sxm-80gb", 1, 5), ("l40s", 0.5, 3)],
)
def test_reference_prices_are_where_the_market_is(
    catalog: Catalog, gpu: str, lowest: float, highest: float
) -> None:
    reference = catalog.reference_price(gpu, DAY)
    assert lowest < reference.usd_per_gpu_hour < highest
    assert reference.providers >= 3


def test_an_owned_card_costs_less_than_a_rented_one(catalog: Catalog) -> None:
    owned = catalog.reference_price("h100-sxm", DAY, market="owned")
    assert 0 < owned.usd_per_gpu_hour < catalog.reference_price("h100-sxm", DAY).usd_per_gpu_hour
    assert len([offer for offer in catalog.content.offers if offer.market == "owned"]) == 14


def test_an_api_price_of_zero_is_unknown(content: CatalogContent) -> None:
    figures = [
        usd
        for price in content.api_prices
        for usd in (price.input_usd_per_mtok, price.cached_input_usd_per_mtok, price.output_usd_per_mtok)
        if usd is not None
    ]
    assert min(figures) > 0
    assert sum("prints as 0" in (price.notes or "") for price in content.api_prices) == 24


def test_an_api_price_that_is_surely_wrong_keeps_its_figures_in_its_notes(content: CatalogContent) -> None:
    row = next(p for p in content.api_prices if p.provider_model_id == "openinfer/@oi/Qwen3.5-9B")
    assert (row.input_usd_per_mtok, row.output_usd_per_mtok) == (None, None)
    assert row.notes is not None
    assert "input 5.0, output 0.15" in row.notes


def test_published_prices_of_a_model_are_found(catalog: Catalog) -> None:
    found = catalog.api_prices("llama-3.3-70b", DAY)
    assert len({price.provider for price in found}) > 10


@pytest.mark.parametrize("seller", ["MiniMax", "Novita"])
@pytest.mark.parametrize(("ctx", "usd"), [(400_000, "0.3"), (600_000, "0.6")])
def test_long_prompts_cost_more_where_the_seller_says_so(
    catalog: Catalog, seller: str, ctx: int, usd: str
) -> None:
    offers = [
        price
        for price in of_one_tier(catalog.api_prices("minimax-m3", DAY), ctx)
        if price.provider == seller and (price.context_limit_tokens or ctx) >= ctx
    ]
    assert {price.input_usd_per_mtok for price in offers} == {Decimal(usd)}
