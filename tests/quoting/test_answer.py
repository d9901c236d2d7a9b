"""The answer of a quote: its sections, its numbers as text, its grounds, and the laws of its prices."""

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.errors import Infeasible
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from tests.engine.shapes import TODAY

# The order of design: identity, request, deployment, cost, prices, ... sources, warnings.
SECTIONS = [
    "as_of",
    "catalog_revision",
    "engine_version",
    "request",
    "deployment",
    "cost",
    "prices",
    "prefix_caching",
    "context_rent",
    "concurrency",
    "memory",
    "latency",
    "throughput",
    "uncertainty",
    "market",
    "assumptions",
    "sources",
    "warnings",
]
CLASSES = ("input", "cached_input", "output")
FIRST: dict[str, Any] = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8_192}
MONEY = re.compile(r"-?\d+\.(\d{6,})")

MODELS = ["llama-3.1-8b", "deepseek-v3", "gemma-3-27b", "gpt-oss-120b", "llama-4-scout", "jamba-1.5-mini"]
GPUS = ["h100", "b200", "mi300x", "l4"]
WAYS: list[dict[str, Any]] = [
    {},
    {"mode": "disaggregated", "attribution": "pools"},
    {"attribution": "step", "hit_rate": 0.5},
    {"hit_rate": 0.7, "slo": "strict"},
    {"prefix_tokens": 1_000, "turns": 3, "rps": 0.2},
    {"kv_cache": "off", "slo": "batch"},
    {"allocation": "contiguous", "currency": "EUR", "fx_rate": "0.9", "margin": 0.2},
]


def quote(catalog: Catalog, **given: Any) -> Any:
    return answered(catalog, {**FIRST, **given})


def answered(catalog: Catalog, given: dict[str, Any]) -> Any:
    return make_quote(catalog, parse_request(given), TODAY)


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        for name, child in node.items():
            yield from leaves(child, f"{path}.{name}")
    elif isinstance(node, list):
        for child in node:
            yield from leaves(child, path)
    else:
        yield path, node


def is_money(path: str) -> bool:
    name = path.rsplit(".", 1)[-1]
    in_price = path.startswith(".prices.") and name in {"low", "high"}
    return in_price or "usd" in name or name.endswith("_per_mtok")


def price(answer: Any, name: str) -> float:
    return float(answer["prices"][name]["usd_per_mtok"])


def test_sections_stand_in_their_order(catalog: Catalog) -> None:
    assert list(quote(catalog)) == SECTIONS
    assert list(quote(catalog, trace="1")) == [*SECTIONS, "trace"]


def test_the_example_of_the_readme_is_answered(catalog: Catalog) -> None:
    answer = quote(catalog)
    assert answer["request"]["gpu"] == "h100-sxm"
    assert answer["deployment"]["gpus"] > 1, "141 GB of weights do not fit one card"
    assert answer["memory"]["model_kv_bytes_per_sequence"] == 2_684_354_560
    assert answer["memory"]["model_kv_bytes_per_token"] == 327_680
    # Published prices of 70B models lie at 0.4 to 0.9 USD per Mtok: the blend is of that size.
    assert 0.1 < price(answer, "blended") < 2.0
    assert price(answer, "cached_input") < price(answer, "input") < price(answer, "output")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("gpu", GPUS)
def test_every_number_is_finite_and_money_is_plain_text(catalog: Catalog, model: str, gpu: str) -> None:
    priced = 0
    for number, way in enumerate(WAYS):
        context = (2_048, 4_096, 16_384)[number % 3]
        try:
            answer = quote(catalog, **{"model": model, "gpu": gpu, "ctx": context, **way})
        except Infeasible:
            continue
        priced += 1
        for path, value in leaves(answer):
            assert not isinstance(value, float) or math.isfinite(value), path
            if is_money(path) and value is not None:
                assert isinstance(value, str), path
                assert MONEY.fullmatch(value), (path, value)
        assert "trace" not in answer
        conserves(answer)
    assert priced >= 5


def conserves(answer: Any) -> None:
    """Prices times tokens are the request's cost, with the margin and the load in both."""
    request = answer["request"]
    cached = request["cached_input_tokens"]
    tokens = {
        "input": request["input_tokens"] - cached,
        "cached_input": cached,
        "output": request["output_tokens"],
    }
    bill = sum(tokens[name] * price(answer, name) for name in CLASSES) / 1e6
    cost = float(answer["cost"]["request_usd"])
    assert bill == pytest.approx(cost, rel=1e-6)
    assert price(answer, "blended") * sum(tokens.values()) / 1e6 == pytest.approx(cost, rel=1e-6)
    assert abs(answer["prices"]["conservation_residual_share"]) < 5e-3
    for name in CLASSES:
        low, high = (float(answer["prices"][name][end]) for end in ("low", "high"))
        assert low <= price(answer, name) <= high


def test_every_default_is_echoed_and_named(catalog: Catalog) -> None:
    request = quote(catalog)["request"]
    named = set(request["defaults"])
    given = {"model", "gpu", "ctx"}
    assert named & given == set()
    assert {"weights", "kv", "stack", "slo", "utilization", "attribution", "market", "as_of"} <= named
    assert request["weights"] == "bf16"
    assert (request["tpot_ms"], request["utilization"]) == (50.0, 0.8)
    assert (request["input_tokens"], request["output_tokens"]) == (7_680, 512)
    spoken = quote(catalog, weights="fp8", utilization=0.9, slo="batch")["request"]
    assert set(spoken["defaults"]) & {"weights", "utilization", "slo"} == set()
    assert (spoken["tpot_ms"], spoken["weights"]) == (None, "fp8")


def test_assumptions_have_value_kind_day_and_a_source_that_is_listed(catalog: Catalog) -> None:
    answer = quote(catalog)
    sources = {source["id"]: source for source in answer["sources"]}
    assert len(answer["assumptions"]) > 20
    for assumption in answer["assumptions"]:
        assert isinstance(assumption["value"], float)
        assert assumption["kind"] in {"measured", "estimate"}
        assert assumption["points"] if assumption["kind"] == "measured" else assumption["reason"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", assumption["dated"])
        assert assumption["unit"]
        assert f"assumption.{assumption['name']}" in sources[assumption["source"]]["covers"]
    names = {assumption["name"] for assumption in answer["assumptions"]}
    assert {"utilization_share", "interactive_tpot_s", "default_output_tokens", "gemm_mfu_share"} <= names


def test_sources_resolve_and_cover_the_model_the_card_and_the_price(catalog: Catalog) -> None:
    answer = quote(catalog)
    covered = {field for source in answer["sources"] for field in source["covers"]}
    assert {"model.hidden_size", "model.attention", "gpu.dense_bf16_tflops", "gpu_price"} <= covered
    for source in answer["sources"]:
        assert catalog.source(source["id"]).title == source["title"]


def test_one_price_stands_behind_another_currency(catalog: Catalog) -> None:
    answer = quote(catalog, currency="EUR", fx_rate="0.5")
    for name in CLASSES:
        assert float(answer["prices"][name]["eur_per_mtok"]) == pytest.approx(price(answer, name) / 2)


@pytest.mark.parametrize(
    "way", [{}, {"attribution": "step"}, {"mode": "disaggregated", "attribution": "pools"}]
)
def test_doubling_the_gpu_price_doubles_every_price(catalog: Catalog, way: dict[str, str]) -> None:
    one, two = (quote(catalog, price_usd_per_gpu_hour=usd, hit_rate=0.4, **way) for usd in ("2", "4"))
    for name in (*CLASSES, "blended"):
        assert price(two, name) == pytest.approx(2 * price(one, name), rel=1e-6)
    assert two["concurrency"] == one["concurrency"]


def test_margin_and_utilization_scale_every_price(catalog: Catalog) -> None:
    plain, more = quote(catalog, gpus=4, slo="batch"), quote(catalog, gpus=4, slo="batch", margin=0.25)
    half = quote(catalog, gpus=4, slo="batch", utilization=0.4)
    for name in CLASSES:
        assert price(more, name) == pytest.approx(1.25 * price(plain, name), rel=1e-6)
        assert price(half, name) == pytest.approx(2 * price(plain, name), rel=1e-6)


@pytest.mark.parametrize("way", [{}, {"mode": "disaggregated"}, {"hit_rate": 0.5}, {"turns": 3}])
@pytest.mark.parametrize("rps", [0.01, 3.0, 250.0])
def test_with_a_rate_prices_times_traffic_are_the_bill_of_the_fleet(
    catalog: Catalog, way: dict[str, Any], rps: float
) -> None:
    answer = quote(catalog, rps=rps, price_usd_per_gpu_hour="3", **way)
    fleet, request = answer["cost"]["fleet"], answer["request"]
    uncached = request["input_tokens"] - request["cached_input_tokens"]
    spent = (
        uncached * price(answer, "input")
        + request["cached_input_tokens"] * price(answer, "cached_input")
        + request["output_tokens"] * price(answer, "output")
    )
    assert spent * rps * 3600 / 1e6 == pytest.approx(float(fleet["usd_per_hour"]), rel=1e-6)
    assert float(fleet["usd_per_hour"]) == pytest.approx(3 * fleet["gpus"])
    assert fleet["gpus"] == answer["deployment"]["gpus"] * (fleet["replicas"] + fleet["prefill_replicas"])


def test_idle_cost_appears_far_below_capacity(catalog: Catalog) -> None:
    busy, idle, saturated = quote(catalog, rps=500.0), quote(catalog, rps=0.001), quote(catalog)
    assert idle["cost"]["fleet"]["idle_share"] > 0.99
    assert price(idle, "output") > 100 * price(busy, "output")
    assert price(busy, "output") == pytest.approx(price(saturated, "output"), rel=0.02)


def test_a_hit_rate_of_zero_is_no_cache_and_savings_are_an_example(catalog: Catalog) -> None:
    plain, zero = quote(catalog), quote(catalog, hit_rate=0)
    assert zero["prices"] == plain["prices"]
    caching = plain["prefix_caching"]
    assert (caching["hit_rate"], caching["example"], caching["example_hit_rate"]) == (0, True, 0.5)
    assert float(caching["savings"]["usd_per_request"]) > 0
    named = quote(catalog, hit_rate=0.5, gpus=plain["deployment"]["gpus"])
    saved = float(plain["cost"]["request_usd"]) - float(named["cost"]["request_usd"])
    assert float(caching["savings"]["usd_per_request"]) == pytest.approx(saved, rel=1e-3)
    assert named["prefix_caching"]["example"] is False


def test_spread_of_lengths_changes_the_price_at_equal_means(catalog: Catalog) -> None:
    profile = {"input_tokens": 6_000, "output_tokens": 1_000, "max_context_tokens": 8_192}
    given = {"model": "llama-3-70b", "gpu": "h100", "gpus": 4, "slo": "batch"}
    equal, spread = (
        answered(catalog, {**given, "profile": {**profile, "input_cv": cv, "output_cv": cv}})
        for cv in (0.0, 1.0)
    )
    assert spread["concurrency"]["limits"]["memory"] < 0.9 * equal["concurrency"]["limits"]["memory"]


def test_the_cheapest_layout_is_chosen(catalog: Catalog) -> None:
    best = quote(catalog, model="llama-3.1-8b", price_usd_per_gpu_hour="2")
    for gpus in (1, 2, 4, 8):
        other = quote(catalog, model="llama-3.1-8b", price_usd_per_gpu_hour="2", gpus=gpus)
        assert float(best["cost"]["request_usd"]) <= float(other["cost"]["request_usd"]) * (1 + 1e-9)


def test_a_quote_of_a_day_uses_that_day(catalog: Catalog) -> None:
    then, now = quote(catalog, as_of="2026-06-15"), quote(catalog)
    assert (then["as_of"], now["as_of"]) == ("2026-06-15", "2026-11-29")
    assert then["cost"]["gpu_price"]["last_observed"] <= "2026-06-15"
    for offer in then["market"]["cheapest"]:
        assert offer["observed"] is None or offer["observed"] <= "2026-06-15"
