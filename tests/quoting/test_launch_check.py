"""Launch checks against quotes: the same numbers, cliffs by brute force, levers by quoting again."""

from datetime import date
from typing import Any, cast

import numpy as np
import pytest

from costsvc.db.entries import ApiPrice
from costsvc.db.snapshot import Catalog
from costsvc.errors import ContextTooLong, DoesNotFit, InvalidRequest, NotInCatalog
from costsvc.ingest.api_prices import ApiPriceFile
from costsvc.quoting.answer.plain import number
from costsvc.quoting.contexts import of_chosen
from costsvc.quoting.evaluate import evaluate
from costsvc.quoting.given import parse_filter
from costsvc.quoting.launch.cliffs import cliffs_of
from costsvc.quoting.launch.offers import buying_section
from costsvc.quoting.launch.request import LaunchRequest
from costsvc.quoting.launch.traffic import Offered
from costsvc.quoting.launch_check import check_launch
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from tests.docs.refresh import DAY

FEATURE = {"model": "llama-3.1-70b", "gpu": "h100", "ctx": 65_536}
USERS = 5000


def checked(catalog: Catalog, **asked: Any) -> Any:
    return check_launch(catalog, parse_filter(LaunchRequest, asked), DAY)


def quoted(catalog: Catalog, **asked: Any) -> Any:
    return make_quote(catalog, parse_request(asked), DAY)


@pytest.fixture(scope="module")
def answer(catalog: Catalog) -> Any:
    return checked(catalog, **FEATURE, users=USERS)


@pytest.mark.parametrize(("side", "ctx"), [("now", 8192), ("with_feature", 65_536)])
def test_each_side_says_what_a_quote_at_its_rate_says(
    catalog: Catalog, answer: Any, side: str, ctx: int
) -> None:
    shown = answer[side]
    rps = USERS / (
        (shown["latency"]["ttft_ms"] + shown["output_tokens"] * shown["latency"]["tpot_ms"]) / 1e3 + 60
    )
    quote = quoted(catalog, **{**FEATURE, "ctx": ctx, "output": 512, "rps": rps})
    fleet = quote["cost"]["fleet"]
    assert (shown["gpus_per_replica"], shown["tp"]) == (
        quote["deployment"]["gpus"],
        quote["deployment"]["tp"],
    )
    assert (shown["concurrency"], shown["bound"]) == (
        quote["concurrency"]["limit"],
        quote["concurrency"]["bound"],
    )
    assert shown["gpus"] == fleet["gpus"]
    assert float(shown["usd_per_month"]) == pytest.approx(float(fleet["usd_per_hour"]) * 730)
    assert shown["memory"]["kv_share_of_usable"] == quote["memory"]["kv_share_of_usable"]
    assert shown["latency"]["ttft_ms"] == pytest.approx(quote["latency"]["ttft_ms"])
    saturated = quoted(catalog, **{**FEATURE, "ctx": ctx, "output": 512})
    assert shown["blended_usd_per_mtok"] == saturated["prices"]["blended"]["usd_per_mtok"]


def test_users_become_a_rate_by_littles_law(answer: Any) -> None:
    traffic = answer["traffic"]
    assert traffic["rps"] * (traffic["residence_s"] + traffic["pause_s"]) == pytest.approx(USERS)
    assert traffic["requests_in_flight"] == pytest.approx(traffic["rps"] * traffic["residence_s"])
    assert f"{USERS} / (" in traffic["littles_law"]


def test_the_peak_takes_the_fleet_of_its_rate(catalog: Catalog, answer: Any) -> None:
    peak_rps = answer["traffic"]["rps"] * answer["traffic"]["peak_ratio"]
    fleet = quoted(catalog, **FEATURE, rps=peak_rps)["cost"]["fleet"]
    assert answer["with_feature"]["at_peak"]["gpus"] == fleet["gpus"] > answer["with_feature"]["gpus"]


def test_the_opportunity_is_the_context_rent_of_the_quote(catalog: Catalog) -> None:
    asked = {"model": "llama-3-8b", "gpu": "a10g", "ctx": 8192, "slo": "batch"}
    rent = quoted(catalog, **asked)["context_rent"]
    assert rent["memory_binds"]
    assert checked(catalog, **asked, rps=1)["opportunity"] == rent


def test_cliffs_of_concurrency_are_where_brute_force_finds_them(catalog: Catalog) -> None:
    running = evaluate(catalog, parse_request(FEATURE), DAY)
    halvings = [c for c in cliffs_of(catalog, running, 8192) if c["kind"] == "concurrency_halves"]
    contexts = np.arange(8192.0, 65_537.0)
    sequences = of_chosen(running).at(contexts).sequences[0]
    assert halvings
    for place, cliff in enumerate(halvings, start=1):
        below = ~(sequences > sequences[0] / 2**place)
        assert not below.any() or cliff["ctx"] == contexts[np.argmax(below)]


def test_a_wider_replica_is_needed_exactly_where_a_quote_on_the_narrow_one_fails(catalog: Catalog) -> None:
    asked = {**FEATURE, "slo": "batch"}
    cliffs = checked(catalog, **asked, rps=1, today_ctx=1024)["cliffs"]
    wider = [cliff for cliff in cliffs if cliff["kind"] == "wider_replica"]
    assert wider
    for cliff in wider:
        narrow = {**asked, "tp": cliff["gpus_before"], "gpus": cliff["gpus_before"], "output": 512}
        quoted(catalog, **{**narrow, "ctx": cliff["ctx"] - 1})
        with pytest.raises(DoesNotFit):
            quoted(catalog, **{**narrow, "ctx": cliff["ctx"]})


def test_the_objective_breaks_at_the_first_context_whose_first_token_is_late(catalog: Catalog) -> None:
    running = evaluate(catalog, parse_request({**FEATURE, "ctx": 16_384, "ttft_ms": 2500}), DAY)
    (cliff,) = [c for c in cliffs_of(catalog, running, 8192) if c["kind"] == "objective_breaks"]
    contexts = np.arange(8192.0, 65_537.0)
    fails = np.isnan(of_chosen(running).at(contexts).sequences[0])
    assert cliff["ctx"] == contexts[np.argmax(fails)]


def test_the_window_ends_where_a_quote_is_refused(catalog: Catalog, answer: Any) -> None:
    (end,) = [cliff["ctx"] for cliff in answer["cliffs"] if cliff["kind"] == "window_ends"]
    quoted(catalog, **{**FEATURE, "ctx": end - 1})
    with pytest.raises(ContextTooLong):
        quoted(catalog, **{**FEATURE, "ctx": end})


def test_a_published_price_that_ends_is_a_cliff(catalog: Catalog) -> None:
    model = "deepseek-r1-0528"
    running = evaluate(catalog, parse_request({"model": model, "gpu": "h200", "ctx": 8192}), DAY)
    tiers: list[Any] = [c for c in cliffs_of(catalog, running, 8192) if c["kind"] == "api_tier_changes"]
    limits = {price.context_limit_tokens for price in catalog.api_prices(model, DAY)}
    assert tiers
    for cliff in tiers:
        assert cliff["ctx"] - 1 in limits
        after = cliff["usd_per_mtok_from_here"]
        assert after is None or after > cliff["usd_per_mtok_before"]


REQUOTED: dict[str, dict[str, Any]] = {
    "fp8_kv": {"kv": "fp8"},
    "fp8_weights": {"weights": "fp8"},
    "fp4_weights": {"weights": "int4"},
    "disaggregation": {"mode": "disaggregated"},
    "prefix_caching": {"hit_rate": 0.5},
    "context_cap": {"ctx": 32_768, "output": 512},
    "speculative_decoding": {"speculation": "draft-model", "draft_model": "llama-3.2-1b"},
}


@pytest.mark.parametrize("lever", REQUOTED)
def test_a_lever_costs_what_a_quote_with_it_costs(catalog: Catalog, answer: Any, lever: str) -> None:
    (shown,) = [one for one in answer["levers"] if one["id"] == lever]
    quote = quoted(catalog, **{**FEATURE, **REQUOTED[lever]})
    assert shown["request_usd"] == quote["cost"]["request_usd"]
    assert shown["gpus_per_replica"] == quote["deployment"]["gpus"]
    asked = float(answer["with_feature"]["request_usd"])
    assert shown["saves_share"] == pytest.approx(1 - float(shown["request_usd"]) / asked)
    assert shown["side_effect"]


def test_another_gpu_is_the_cheapest_of_all_others(catalog: Catalog, answer: Any) -> None:
    (shown,) = [one for one in answer["levers"] if one["id"] == "another_gpu"]
    assert shown["request_usd"] == quoted(catalog, **{**FEATURE, "gpu": shown["gpu"]})["cost"]["request_usd"]
    for gpu in ("h200", "b200", "mi300x", "a100-80gb"):
        other = quoted(catalog, **{**FEATURE, "gpu": gpu})["cost"]["request_usd"]
        assert float(shown["request_usd"]) <= float(other)


def test_each_step_of_the_stack_saves_and_keeps_the_feature(answer: Any) -> None:
    costs = [
        float(answer["with_feature"]["request_usd"]),
        *(float(s["request_usd"]) for s in answer["stack"]),
    ]
    assert len(costs) > 2
    assert costs == sorted(costs, reverse=True)
    assert "context_cap" not in {step["id"] for step in answer["stack"]}


def test_offload_is_a_lever_where_prefixes_come_again(catalog: Catalog, answer: Any) -> None:
    asked = {**FEATURE, "ctx": 16_384, "prefix_tokens": 4000, "turns": 4, "rps": 5}
    offload = [one for one in checked(catalog, **asked)["levers"] if one["id"] == "offload"]
    assert "offload" not in {one["id"] for one in answer["levers"]}
    quote = quoted(catalog, **{**asked, "rps": None, "dram_gb_per_gpu": 200})
    assert offload[0]["request_usd"] == quote["cost"]["request_usd"]


def test_what_prefixes_of_the_profile_save_is_said_and_in_the_numbers(catalog: Catalog) -> None:
    asked = {"model": "llama-3.1-70b", "gpu": "h100", "profile": "rag"}
    answer = checked(catalog, **asked, users=100)
    quote = quoted(catalog, **asked)
    assert answer["prefix_caching"] == quote["prefix_caching"]
    assert answer["prefix_caching"]["hit_rate"] > 0
    found = answer["with_feature"]["cached_input_tokens"] / answer["with_feature"]["input_tokens"]
    assert found == pytest.approx(answer["prefix_caching"]["hit_rate"])
    assert "prefix_caching" not in {one["id"] for one in answer["levers"]}


def test_a_model_with_a_module_of_its_own_speculates_by_it(catalog: Catalog) -> None:
    asked = {"model": "deepseek-v3", "gpu": "h200", "ctx": 16_384}
    (shown,) = [
        one for one in checked(catalog, **asked, rps=1)["levers"] if one["id"] == "speculative_decoding"
    ]
    assert shown["request_usd"] == quoted(catalog, **asked, speculation="mtp")["cost"]["request_usd"]
    assert "MTP" in shown["what"]


TURNS = {**FEATURE, "ctx": 16_384, "prefix_tokens": 4000, "turns": 4, "rps": 5}


@pytest.mark.parametrize("dram_gb", [None, 400.0])
def test_shorter_retention_is_a_quote_that_forgets_sooner(catalog: Catalog, dram_gb: float | None) -> None:
    asked = {**TURNS, **({"dram_gb_per_gpu": dram_gb} if dram_gb else {})}
    (shown,) = [one for one in checked(catalog, **asked)["levers"] if one["id"] == "shorter_retention"]
    changes = shown["changes"]
    quote = quoted(catalog, **{**asked, "rps": None, **changes})
    assert shown["request_usd"] == quote["cost"]["request_usd"]
    before = quoted(catalog, **{**asked, "rps": None})["prefix_caching"]
    assert changes["retention_s"] < before["retention_s"]
    assert quote["prefix_caching"]["retention_s"] <= number(changes["retention_s"])
    assert quote["prefix_caching"]["hit_rate"] < before["hit_rate"]
    if dram_gb:
        assert (changes["dram_gb_per_gpu"] or 0) < dram_gb


def test_retention_beyond_what_room_allows_changes_nothing(catalog: Catalog) -> None:
    asked = {key: value for key, value in TURNS.items() if key != "rps"}
    free = quoted(catalog, **asked)
    capped = quoted(catalog, **asked, retention_s=300 * 86_400)
    assert capped["cost"] == free["cost"]
    assert capped["prefix_caching"] == free["prefix_caching"]


def test_a_thousand_more_tokens_cost_what_a_longer_quote_on_the_layout_does(
    catalog: Catalog, answer: Any
) -> None:
    shown, feature = answer["longer_context"], answer["with_feature"]
    layout = {name: feature[name] for name in ("tp", "pp", "dp", "ep")}
    usd = [
        float(quoted(catalog, **{**FEATURE, **layout, "ctx": ctx, "output": 512})["cost"]["request_usd"])
        for ctx in (FEATURE["ctx"], shown["ctx"])
    ]
    assert shown["ctx"] == 66_536
    assert float(shown["request_usd"]) == pytest.approx(usd[1] - usd[0], rel=1e-4)
    assert float(shown["usd_per_month"]) == pytest.approx(
        (usd[1] - usd[0]) * answer["traffic"]["requests_per_month"], rel=1e-4
    )


def test_a_profile_is_capped_with_all_that_its_prompts_share(catalog: Catalog) -> None:
    asked = {"model": "llama-3.1-70b", "gpu": "h100", "profile": "rag"}
    (shown,) = [one for one in checked(catalog, **asked, users=10)["levers"] if one["id"] == "context_cap"]
    quote = quoted(catalog, **{**asked, "profile": shown["changes"]["profile"]})
    assert shown["changes"]["profile"]["max_context_tokens"] == 4096 == quote["request"]["ctx"]
    assert shown["request_usd"] == quote["cost"]["request_usd"]
    assert not shown["is_same_feature"]


def test_each_published_price_has_the_traffic_from_which_own_replicas_are_cheaper(
    catalog: Catalog, answer: Any
) -> None:
    feature = answer["with_feature"]
    replica_usd_per_s = feature["gpus_per_replica"] * float(feature["usd_per_gpu_hour"]) / 3600
    saturated = quoted(catalog, **FEATURE, output=512)["throughput"]["carried_requests_per_s"]
    rows = answer["buying"]["cheapest"]
    assert rows
    for row in rows:
        price = float(row["request_usd"])
        pays = price * saturated >= replica_usd_per_s
        rate = row["own_cheaper_from_rps"]
        assert rate == (pytest.approx(replica_usd_per_s / price, rel=1e-6) if pays else None)


def test_at_the_end_of_the_window_there_are_no_more_tokens(catalog: Catalog) -> None:
    shown = checked(catalog, **{**FEATURE, "ctx": 131_072}, users=10)["longer_context"]
    assert shown["usd_per_month"] is None
    assert "131,072" in shown["why_null"]


def test_rope_scaling_begins_where_the_configuration_says(catalog: Catalog) -> None:
    running = evaluate(catalog, parse_request(FEATURE), DAY)
    (cliff,) = [c for c in cliffs_of(catalog, running, 4096) if c["kind"] == "rope_scaling_begins"]
    assert cliff["ctx"] == 8193
    assert "rope_scaling_begins" not in {c["kind"] for c in cliffs_of(catalog, running, 16_384)}


@pytest.mark.parametrize(("ctx", "times"), [(32_512, 1), (32_513, 2), (65_536, 2)])
def test_a_dearer_price_of_long_prompts_is_what_buying_costs(catalog: Catalog, ctx: int, times: int) -> None:
    running = evaluate(catalog, parse_request({**FEATURE, "ctx": ctx}), DAY)
    section: Any = buying_section(_tiered(catalog), running, Offered(rps=1, peak_ratio=1))
    (row,) = section["cheapest"]
    assert float(row["request_usd"]) == pytest.approx(((ctx - 512) * 1.0 + 512 * 3.0) * times / 1e6)
    assert section["break_even"] or section["note"]


def test_a_dearer_price_of_long_prompts_is_a_cliff(catalog: Catalog) -> None:
    running = evaluate(catalog, parse_request(FEATURE), DAY)
    tiers: list[Any] = [
        c for c in cliffs_of(_tiered(catalog), running, 8192) if c["kind"] == "api_tier_changes"
    ]
    (cliff,) = tiers
    assert cliff["ctx"] == 32_001 + 512
    assert cliff["usd_per_mtok_from_here"] == pytest.approx(2 * cliff["usd_per_mtok_before"])


def _tiered(catalog: Catalog) -> Catalog:
    """The catalog with one seller, whose prices double for prompts above 32,000 tokens."""
    seen = {"source": "s", "observed": date(2026, 11, 1), "models": [TIERED]}
    file = ApiPriceFile.model_validate({"provider": "one-seller", "observations": [seen]})
    return cast("Catalog", _OnlyOffers(catalog, file.records("One Seller")))


TIERED: dict[str, Any] = {
    "id": "big",
    "model": "llama-3.1-70b",
    "input_usd_per_mtok": "1",
    "output_usd_per_mtok": "3",
    "context_limit_tokens": 131_072,
    "long_tiers": [{"above_tokens": 32_000, "input_usd_per_mtok": "2", "output_usd_per_mtok": "6"}],
}


class _OnlyOffers:
    """A catalog in which some published prices are the only ones."""

    def __init__(self, catalog: Catalog, prices: tuple[ApiPrice, ...]) -> None:
        self._catalog, self._prices = catalog, prices

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def api_prices(self, *_: Any) -> tuple[ApiPrice, ...]:
        return self._prices


def test_any_gpu_is_the_one_with_the_least_cost(catalog: Catalog) -> None:
    asked = {**FEATURE, "gpu": "any", "ctx": 8192}
    shown = checked(catalog, **asked, users=100)["with_feature"]
    assert float(shown["request_usd"]) <= float(
        quoted(catalog, **{**asked, "gpu": "h100"})["cost"]["request_usd"]
    )
    assert shown["request_usd"] == quoted(catalog, **{**asked, "gpu": shown["gpu"]})["cost"]["request_usd"]


def test_verdicts_are_told_apart(catalog: Catalog) -> None:
    small = {**FEATURE, "ctx": 16_384, "users": 100}
    assert checked(catalog, **small)["verdict"]["fits"] == "fits"
    changes = checked(catalog, **{**small, "gpus": 1})["verdict"]
    assert changes["fits"] == "fits with changes"
    assert "H100" in changes["as_asked"]
    beyond = checked(catalog, **{**small, "ctx": 1_000_000})
    assert beyond["verdict"]["fits"] == "does not fit"
    assert "131,072" in beyond["verdict"]["sentence"]


def test_an_objective_that_only_a_lever_reaches_fits_with_it(catalog: Catalog) -> None:
    asked = {**FEATURE, "ctx": 8192, "gpu": "a100-80gb", "gpus": 2, "tpot_ms": 20}
    verdict = checked(catalog, **asked, rps=1)["verdict"]
    assert verdict["fits"] == "fits with changes"


@pytest.mark.parametrize(
    "wrong", [{}, {"users": 1, "rps": 1}, {"rps": 1, "pause_s": 3}, {"users": 0}, {"users": float("nan")}]
)
def test_traffic_is_asked_for_once(catalog: Catalog, wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidRequest):
        checked(catalog, **FEATURE, **wrong)


def test_an_unknown_gpu_names_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(NotInCatalog, match="h100"):
        checked(catalog, **{**FEATURE, "gpu": "h101"}, users=1)
