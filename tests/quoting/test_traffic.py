"""Quotes of traffic profiles: spread, sharing, tiers, hours."""

from datetime import date
from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request

TODAY = date(2026, 11, 29)
LOAD: dict[str, Any] = {"input_tokens": 6000, "output_tokens": 500, "max_context_tokens": 60_000}
DEPLOYMENT = {"model": "llama-3.1-70b", "gpu": "h100", "tp": 4, "slo": "batch"}


@pytest.fixture(scope="module")
def shipped() -> Catalog:
    return Catalog(read_catalog(catalog_root(None)), revision=None)


def quote(catalog: Catalog, profile: object, **more: object) -> Any:
    return make_quote(catalog, parse_request({**DEPLOYMENT, "profile": profile, **more}), TODAY)


def usd(answer: Any, price: str = "blended") -> float:
    return float(answer["prices"][price]["usd_per_mtok"])


@pytest.mark.parametrize(
    "spread",
    [
        {"output_cv": 1.2},
        {"input_cv": 1.2},
        {"input_cv": 0.8, "output_cv": 0.8, "length_correlation": 0.9},
    ],
)
def test_equal_means_with_more_spread_run_fewer_at_once_and_cost_more(
    shipped: Catalog, spread: dict[str, float]
) -> None:
    even, uneven = quote(shipped, LOAD), quote(shipped, {**LOAD, **spread})
    assert uneven["concurrency"]["limit"] < even["concurrency"]["limit"]
    assert usd(uneven) > 1.01 * usd(even)


def test_long_prompts_with_long_outputs_cost_more_than_with_short_ones(shipped: Catalog) -> None:
    together, apart = (
        quote(shipped, {**LOAD, "input_cv": 0.8, "output_cv": 0.8, "length_correlation": sign})
        for sign in (0.8, -0.8)
    )
    assert usd(together) > usd(apart)
    assert together["concurrency"]["limit"] < apart["concurrency"]["limit"]


def test_quantiles_and_a_histogram_say_the_same_as_means(shipped: Catalog) -> None:
    means = quote(shipped, LOAD)
    quantiles = quote(
        shipped,
        {
            "input_quantiles": [{"share": 0.5, "tokens": 6000}],
            "output_quantiles": [{"share": 0.5, "tokens": 500}],
            "max_context_tokens": 60_000,
        },
    )
    bins = [{"input_tokens": 6000, "output_tokens": 500, "share": 1.0}]
    histogram = quote(shipped, {"histogram": bins, "max_context_tokens": 60_000})
    assert means["prices"] == quantiles["prices"] == histogram["prices"]


def test_growth_gives_the_mean_prompt(shipped: Catalog) -> None:
    answer = quote(
        shipped, {"growth_tokens": 100, "output_tokens": 50, "turns": 5, "system_prompt_tokens": 200}
    )
    assert answer["request"]["input_tokens"] == 200 + 100 * 3 + 50 * 2


def test_a_lower_tier_holds_what_memory_cannot_and_its_rent_is_paid(shipped: Catalog) -> None:
    profile = {**LOAD, "turns": 6, "think_s": 900}
    alone, with_dram = quote(shipped, profile), quote(shipped, profile, dram_gb_per_gpu=512)
    hits = {tier["tier"]: tier for tier in with_dram["prefix_caching"]["by_tier"]}
    assert hits["dram"]["hit_rate"] > 0.1
    assert hits["dram"]["load_ms"] > 0
    assert with_dram["prefix_caching"]["hit_rate"] > alone["prefix_caching"]["hit_rate"] + 0.1
    total = sum(tier["hit_rate"] for tier in hits.values())
    assert total == pytest.approx(with_dram["prefix_caching"]["hit_rate"], rel=1e-6)
    assert float(with_dram["cost"]["cache_tiers_usd_per_gpu_hour"]) > 0
    gpus = with_dram["deployment"]["gpus"]
    hourly = float(with_dram["cost"]["gpu_price"]["usd_per_gpu_hour"]) + float(
        with_dram["cost"]["cache_tiers_usd_per_gpu_hour"]
    )
    assert float(with_dram["cost"]["replica_usd_per_hour"]) == pytest.approx(gpus * hourly)


def test_one_more_gb_of_a_full_cache_is_worth_more_than_of_a_roomy_one(shipped: Catalog) -> None:
    profile = {**LOAD, "turns": 6, "think_s": 60}
    full, roomy = quote(shipped, profile), quote(shipped, profile, dram_gb_per_gpu=4000)
    gained = [one["prefix_caching"]["one_more_gb"]["hit_rate_gained"] for one in (full, roomy)]
    assert gained[0] > 10 * gained[1]
    dram = full["prefix_caching"]["one_more_gb"]["dram"]
    assert float(dram["net_usd_per_month"]) == pytest.approx(
        float(dram["saved_usd_per_month"]) - float(dram["rent_usd_per_month"])
    )


def test_context_is_held_briefly_then_offloaded_then_computed_again(shipped: Catalog) -> None:
    answer = quote(shipped, {**LOAD, "turns": 6, "think_s": 60})
    steps = answer["prefix_caching"]["keep_or_recompute"]["by_think_time"]
    assert steps[0]["do"] == "hbm"
    assert steps[0]["from_s"] == 0
    assert steps[-1]["do"] == "recompute"
    assert steps[-1]["to_s"] is None
    assert len(steps) > 2
    crossings = [step["to_s"] for step in steps[:-1]]
    assert crossings == sorted(crossings)


def test_a_lifetime_of_an_hour_finds_more_than_five_minutes_and_holds_more(shipped: Catalog) -> None:
    lifetimes = quote(shipped, {**LOAD, "turns": 6, "think_s": 600})["prefix_caching"]["lifetimes"]
    short, long = lifetimes["300_s"], lifetimes["3600_s"]
    assert long["hit_rate"] > short["hit_rate"]
    assert long["held_gb_per_replica"] > short["held_gb_per_replica"]
    for tier, best_s in lifetimes["best_lifetime_s"].items():
        nets = {300.0: short[tier], 3600.0: long[tier]}
        earned = {lifetime: float(one["net_usd_per_month"]) for lifetime, one in nets.items()}
        assert best_s == (max(earned, key=lambda one: earned[one]) if max(earned.values()) > 0 else None)


def test_the_hours_of_a_day_are_scaled_with_the_load_and_their_bill_is_what_is_charged(
    shipped: Catalog,
) -> None:
    shape = [1] * 12 + [9] * 12
    answer = quote(shipped, {**LOAD, "rps": 40, "hourly_shape": shape, "turns": 3})
    traffic = answer["traffic"]
    hours = traffic["by_hour"]
    assert [round(hour["rps"], 6) for hour in hours] == [8.0] * 12 + [72.0] * 12
    assert hours[0]["gpus"] < hours[12]["gpus"]
    assert traffic["fixed_peak"]["gpus"] == hours[12]["gpus"]
    assert float(traffic["autoscaled"]["usd_per_month"]) < float(traffic["fixed_peak"]["usd_per_month"])
    charged = float(answer["cost"]["request_usd"]) * traffic["requests_per_month"]
    assert charged == pytest.approx(float(traffic["autoscaled"]["usd_per_month"]), rel=1e-6)
    session = float(traffic["usd_per_session"])
    assert session == pytest.approx(3 * float(traffic["usd_per_request"]))


def test_without_a_shape_the_rate_is_the_same_all_day(shipped: Catalog) -> None:
    traffic = quote(shipped, {**LOAD, "rps": 40})["traffic"]
    assert traffic["by_hour"] is None
    assert traffic["autoscaled"] == traffic["fixed_peak"]


def test_prices_add_up_to_the_request_for_every_shipped_profile(shipped: Catalog) -> None:
    for id in shipped.profiles:
        # The longest of the synthetic trace is beyond what most models take.
        model = "llama-4-scout" if id == "mooncake-synthetic" else "llama-3.1-8b"
        request = {"model": model, "gpu": "h100", "profile": id}
        answer: Any = make_quote(shipped, parse_request(request), TODAY)
        asked, prices = answer["request"], answer["prices"]
        uncached = asked["input_tokens"] - asked["cached_input_tokens"]
        total = (
            uncached * usd(answer, "input")
            + asked["cached_input_tokens"] * usd(answer, "cached_input")
            + asked["output_tokens"] * usd(answer, "output")
        )
        assert total / 1e6 == pytest.approx(float(answer["cost"]["request_usd"]), rel=1e-5), id
        assert all(float(prices[name]["usd_per_mtok"]) > 0 for name in ("input", "cached_input", "output"))
