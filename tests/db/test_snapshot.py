"""Names that people type, and the price of an hour on a day."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from costsvc.db.entries import ApiPrice, Offer
from costsvc.db.snapshot import Catalog
from costsvc.errors import Ambiguous, NoPriceInForce, NotInCatalog
from tests.db.examples import CONTENT, DAY, gpu, model, offer, with_offers

CATALOG = Catalog(CONTENT, 7)
RECENT = date(2026, 6, 15)


def catalog_of(*offers: Offer) -> Catalog:
    return Catalog(with_offers(CONTENT, *offers), 7)


@pytest.mark.parametrize(
    "typed",
    [
        "llama-3-70b",
        " Llama 3_70B ",
        "LLAMA3-70B",
        "meta-llama/Meta-Llama-3-70B",
        "meta-llama-3-70b",
        "somebody-else/Meta-Llama-3-70B",
        "The llama-3-70b model",
    ],
)
def test_a_model_is_found_by_every_common_spelling(typed: str) -> None:
    assert CATALOG.model(typed).id == "llama-3-70b"


def test_gpus_stacks_dtypes_and_plans_are_found_by_alias() -> None:
    assert CATALOG.gpu("H100").id == "h100-sxm"
    assert CATALOG.stack("vLLM").id == "vllm"
    assert CATALOG.dtype("BFloat16").spec.id == "bf16"
    assert CATALOG.weight_plan("gpt_oss").id == "mxfp4-experts"


def test_a_gpu_is_found_without_its_vendor() -> None:
    named = replace(CONTENT, gpus=(*CONTENT.gpus, replace(gpu("card-9"), name="AMD Instinct Card 9")))
    assert Catalog(named, 1).gpu("Instinct Card-9").id == "card-9"
    assert CATALOG.gpu("NVIDIA H100").id == "h100-sxm"


def test_a_gpu_is_found_by_an_instance_that_has_it_and_by_nothing_that_is_shared() -> None:
    offers = [
        replace(offer("A", [(DAY, "1")], gpu_id=gpu_id, suffix=str(n)), instance_type=instance)
        for n, (gpu_id, instance) in enumerate(
            [("h100-sxm", "big_8"), ("h100-sxm", "big_8"), ("h100-sxm", "any"), ("h100-nvl", "any")]
        )
    ]
    catalog = catalog_of(*offers)
    assert catalog.gpu("Big 8").id == "h100-sxm"
    with pytest.raises(Ambiguous) as shared:
        catalog.gpu("any")
    assert shared.value.candidates == ("h100-nvl", "h100-sxm")
    later = catalog.followed_by(with_offers(CONTENT, offers[2]), 8)
    assert later.gpu("any").id == "h100-sxm"
    with pytest.raises(NotInCatalog):
        later.gpu("big_8")


def test_a_model_is_found_as_a_seller_calls_it_where_that_means_no_other() -> None:
    sold = [
        ApiPrice(provider="A", provider_model_id=id, source_id="s", observed=DAY, model_id=model_id)
        for id, model_id in (("llama-v3-70b", "llama-3-70b"), ("qwen3-8b", "llama-3-70b"), ("x", None))
    ]
    catalog = Catalog(replace(CONTENT, api_prices=tuple(sold)), 1)
    assert catalog.model("Llama-v3-70B").id == "llama-3-70b"
    assert catalog.model("qwen3-8b").id == "qwen3-8b"
    with pytest.raises(NotInCatalog):
        catalog.model("x")


def test_an_id_outranks_the_alias_of_another_entry() -> None:
    content = replace(CONTENT, models=(model("qwen3-8b"), model("qwen3-8b-base", aliases=("Qwen3 8B",))))
    assert Catalog(content, 1).model("QWEN3-8B").id == "qwen3-8b"


def test_a_whole_alias_outranks_one_shortened_by_its_organisation() -> None:
    content = replace(CONTENT, models=(model("a", aliases=("phi-4",)), model("b", hf_id="unsloth/phi-4")))
    catalog = Catalog(content, 1)
    assert catalog.model("phi-4").id == "a"
    assert catalog.model("unsloth/phi-4").id == "b"


def test_ids_that_differ_in_punctuation_alone_stay_reachable() -> None:
    catalog = Catalog(replace(CONTENT, gpus=(gpu("rtx-4090"), gpu("rtx_4090"))), 1)
    assert (catalog.gpu("rtx-4090").id, catalog.gpu("rtx_4090").id) == ("rtx-4090", "rtx_4090")
    with pytest.raises(Ambiguous):
        catalog.gpu("RTX 4090")


def test_a_shared_alias_is_refused_with_its_candidates() -> None:
    with pytest.raises(Ambiguous) as refusal:
        CATALOG.gpu("Hopper")
    assert refusal.value.details["candidates"] == ["h100-nvl", "h100-sxm"]


def test_an_unknown_model_is_answered_with_the_nearest_ids() -> None:
    with pytest.raises(NotInCatalog) as refusal:
        CATALOG.model("org/llama-3.1-7b")
    nearest = refusal.value.details["nearest"]
    assert isinstance(nearest, list)
    assert nearest[0] == "llama-3.1-8b"
    assert "org/llama-3.1-7b" in str(refusal.value)


def test_no_more_than_five_nearest_ids_are_named() -> None:
    content = replace(CONTENT, models=tuple(model(f"llama-{n}b", aliases=(f"lama-{n}b",)) for n in range(30)))
    with pytest.raises(NotInCatalog) as refusal:
        Catalog(content, 1).model("llama-b")
    nearest = refusal.value.details["nearest"]
    assert isinstance(nearest, list)
    assert len(set(nearest)) == len(nearest) == 5


def test_a_weight_plan_for_the_engine_carries_its_dtypes() -> None:
    plan = CATALOG.weight_plan_spec("mxfp4-experts")
    assert (plan.experts.value_bytes, plan.embedding.value_bytes) == (0.53125, 2.0)


def test_the_price_in_force_is_the_last_one_not_after_the_day() -> None:
    example = offer("X", [(date(2026, 3, 1), "2"), (date(2026, 1, 1), "3"), (date(2026, 6, 1), None)])

    def price_on(month: int, day: int) -> Decimal | None:
        found = CATALOG.price_in_force(example, date(2026, month, day))
        return None if found is None else found.usd_per_gpu_hour

    assert price_on(1, 1) == Decimal(3)
    assert price_on(2, 28) == Decimal(3)
    assert price_on(3, 1) == Decimal(2)
    assert price_on(6, 1) is None
    assert CATALOG.price_in_force(example, date(2025, 12, 31)) is None


def test_each_provider_has_one_vote_whatever_number_of_offers_it_lists() -> None:
    catalog = catalog_of(
        *(offer("Big", [(RECENT, usd)], suffix=usd) for usd in ("10", "11", "12", "13")),
        offer("Small", [(RECENT, "2")]),
        offer("Other", [(date(2026, 5, 1), "3")]),
    )
    reference = catalog.reference_price("h100-sxm", DAY)
    assert reference.usd_per_gpu_hour == Decimal(3)
    assert [(v.provider, v.usd_per_gpu_hour, v.offers) for v in reference.votes] == [
        ("Big", Decimal("11.5"), 4),
        ("Other", Decimal(3), 1),
        ("Small", Decimal(2), 1),
    ]
    assert (reference.offers, reference.providers) == (6, 3)
    assert (reference.lowest_usd_per_gpu_hour, reference.highest_usd_per_gpu_hour) == (
        Decimal(2),
        Decimal(13),
    )
    assert (reference.first_observed, reference.last_observed) == (date(2026, 5, 1), RECENT)


def test_what_is_excluded_old_ended_future_or_of_another_market_has_no_vote() -> None:
    catalog = catalog_of(
        offer("Kept", [(date(2025, 11, 29), "4")]),
        offer("Excluded", [(RECENT, "1")], excluded_reason="community marketplace"),
        offer("Old", [(date(2025, 11, 28), "1")]),
        offer("Ended", [(RECENT, "1"), (DAY, None)]),
        offer("Future", [(date(2026, 11, 30), "1")]),
        offer("Spot", [(RECENT, "1")], market="spot"),
        offer("Elsewhere", [(RECENT, "1")], gpu_id="h100-nvl"),
    )
    assert [vote.provider for vote in catalog.reference_price("h100-sxm", DAY).votes] == ["Kept"]


def test_a_provider_alone_gives_its_own_median_in_any_spelling() -> None:
    catalog = catalog_of(
        offer("AWS EC2", [(RECENT, "4")], region="us-east-1"),
        offer("AWS EC2", [(RECENT, "8")], region="eu-north-1"),
        offer("Other", [(RECENT, "1")]),
    )
    assert catalog.reference_price("h100-sxm", DAY, provider="aws-ec2").usd_per_gpu_hour == Decimal(6)
    in_europe = catalog.reference_price("h100-sxm", DAY, provider="AWS EC2", region="EU-North-1")
    assert (in_europe.usd_per_gpu_hour, in_europe.offers) == (Decimal(8), 1)


def test_an_unknown_provider_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(NotInCatalog) as refusal:
        CATALOG.reference_price("h100-sxm", DAY, provider="Exmaple Cloud")
    assert refusal.value.details["nearest"] == ["Example Cloud"]


def test_without_a_price_the_error_names_what_there_is_and_the_way_out() -> None:
    catalog = catalog_of(
        offer("Spotty", [(RECENT, "1")], market="spot"), offer("Past", [(date(2024, 2, 1), "9")])
    )
    with pytest.raises(NoPriceInForce) as refusal:
        catalog.reference_price("h100-sxm", DAY)
    for said in ("on-demand", "h100-sxm", "2026-11-29", "spot", "2024-02-01", "price_usd_per_gpu_hour"):
        assert said in str(refusal.value)
    assert refusal.value.details["markets"] == ["spot"]


def test_an_owned_gpu_without_an_offer_is_a_clear_error() -> None:
    with pytest.raises(NoPriceInForce, match="owned GPU has no market price"):
        CATALOG.reference_price("h100-sxm", DAY, "owned")


def test_the_first_day_of_the_calendar_is_a_day_without_prices() -> None:
    with pytest.raises(NoPriceInForce):
        CATALOG.reference_price("h100-sxm", date.min)


def test_api_prices_are_the_newest_dated_observation_of_each_provider() -> None:
    def observed(day: date | None, usd: str, provider: str = "A") -> ApiPrice:
        return ApiPrice(
            provider=provider,
            provider_model_id="m",
            source_id="price-list",
            observed=day,
            model_id="qwen3-8b",
            input_usd_per_mtok=Decimal(usd),
        )

    prices = (
        observed(date(2026, 1, 1), "1"),
        observed(date(2026, 9, 1), "2"),
        observed(date(2027, 1, 1), "3"),
        observed(None, "4", "B"),
        observed(date(2026, 2, 1), "5", "C"),
    )
    catalog = Catalog(replace(CONTENT, api_prices=prices), 1)
    shown = [(p.provider, p.input_usd_per_mtok) for p in catalog.api_prices("qwen3-8b", DAY)]
    assert shown == [("A", Decimal(2)), ("C", Decimal(5))]
    assert catalog.api_prices("llama-3-70b", DAY) == ()
