"""The trace of a quote: from its terms the answer can be computed again by the formulas it states."""

from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from tests.engine.shapes import TODAY

WAYS: dict[str, dict[str, Any]] = {
    "dense": {"model": "llama-3-70b", "gpu": "h100", "ctx": 8_192},
    "experts": {"model": "deepseek-v3", "gpu": "h200", "ctx": 16_384, "margin": 0.1},
    "pools": {"model": "llama-3-70b", "gpu": "h200", "ctx": 8_192, "mode": "disaggregated"},
    "a rate": {"model": "gemma-3-27b", "gpu": "h100", "ctx": 8_192, "rps": 3.0, "hit_rate": 0.3},
    "slabs": {
        "model": "llama-3.1-8b",
        "gpu": "l40s",
        "ctx": 8_192,
        "allocation": "contiguous",
        "slo": "batch",
    },
}
every_way = pytest.mark.parametrize("way", WAYS)
STEP_PARTS = 9


def traced(catalog: Catalog, way: str) -> tuple[Any, dict[str, float]]:
    answer: Any = make_quote(catalog, parse_request({**WAYS[way], "trace": "1"}), TODAY)
    return answer, {term["name"]: term["value"] for term in answer["trace"]}


@every_way
def test_a_step_is_the_sum_of_its_parts(catalog: Catalog, way: str) -> None:
    _, value = traced(catalog, way)
    for step in ("decode_step", "mixed_step"):
        parts = [term for name, term in value.items() if name.startswith(f"{step}.")]
        assert len(parts) == STEP_PARTS
        assert sum(parts) == pytest.approx(value[f"{step}_s"], rel=1e-6)


@every_way
def test_the_loop_follows_from_its_steps(catalog: Catalog, way: str) -> None:
    answer, value = traced(catalog, way)
    share = value["mixed_share"]
    mean = share * value["mixed_step_s"] + (1 - share) * value["decode_step_s"]
    assert value["step_s"] == pytest.approx(mean, rel=1e-6)
    assert answer["latency"]["tpot_ms"] == pytest.approx(value["step_s"] * 1e3, rel=1e-6)
    output = answer["request"]["output_tokens"]
    assert value["requests_per_s"] == pytest.approx(value["sequences"] / (value["step_s"] * output), rel=1e-6)
    assert answer["throughput"]["requests_per_s"] == pytest.approx(value["requests_per_s"], rel=1e-6)


@every_way
def test_the_request_costs_its_seconds_times_their_price(catalog: Catalog, way: str) -> None:
    answer, value = traced(catalog, way)
    margin = 1 + answer["cost"]["margin"]
    cost = value["request_gpu_s"] * value["gpu_second_usd"] * value["load_multiplier"] * margin
    assert float(answer["cost"]["request_usd"]) == pytest.approx(cost, rel=1e-6)
    assert value["request_usd"] == pytest.approx(cost, rel=1e-6)
    hourly = float(answer["cost"]["gpu_price"]["usd_per_gpu_hour"])
    assert value["gpu_second_usd"] == pytest.approx(hourly / 3600, rel=1e-6)
    decode = value["gpus"] * value["step_s"] * answer["request"]["output_tokens"] / value["sequences"]
    if way == "pools":
        assert value["request_gpu_s"] > decode
    else:
        assert value["request_gpu_s"] == pytest.approx(decode, rel=1e-6)
    if way != "a rate":
        assert value["load_multiplier"] == pytest.approx(1 / answer["cost"]["utilization"])
    for name in ("input", "cached_input", "output"):
        assert float(answer["prices"][name]["usd_per_mtok"]) == pytest.approx(
            value[f"{name}_usd_per_mtok"], rel=1e-6
        )


@every_way
def test_the_concurrency_is_the_least_of_its_limits_or_an_objective(catalog: Catalog, way: str) -> None:
    answer, value = traced(catalog, way)
    limits = {name: term for name, term in value.items() if name.startswith("limit_")}
    assert value["sequences"] <= min(limits.values()) * (1 + 1e-6)
    bound = answer["concurrency"]["bound"]
    if f"limit_{bound}" in limits:
        assert value["sequences"] == pytest.approx(limits[f"limit_{bound}"], rel=1e-6)
    else:
        assert answer["latency"][f"{bound}_ms"] == pytest.approx(answer["request"][f"{bound}_ms"], rel=1e-6)
    assert answer["concurrency"]["limit"] == max(int(value["sequences"] + 1e-9), 1)


@every_way
def test_the_budget_is_what_the_rule_leaves(catalog: Catalog, way: str) -> None:
    _, value = traced(catalog, way)
    taken = sum(
        value[f"{part}_bytes"] for part in ("weight", "activation", "runtime", "collective", "reserved")
    )
    assert value["kv_bytes"] == pytest.approx(value["usable_bytes"] - taken, rel=1e-6)
    assert value["kv_sequence_bytes"] <= value["kv_bytes"]


def test_slabs_divide_the_budget(catalog: Catalog) -> None:
    answer, value = traced(catalog, "slabs")
    assert value["limit_memory"] == pytest.approx(value["kv_bytes"] / value["kv_sequence_bytes"], rel=1e-6)
    assert answer["memory"]["wasted_share"] > 0.03


@every_way
def test_every_term_has_a_formula_inputs_that_exist_and_a_source(catalog: Catalog, way: str) -> None:
    answer, value = traced(catalog, way)
    facts = {
        "shapes",
        "ctx",
        "kv",
        "weights",
        "gpu",
        "tp",
        "pp",
        "dp",
        "utilization",
        "rps",
        "margin",
        "gpu_price",
    }
    names = [term["name"] for term in answer["trace"]]
    assert len(names) == len(set(names)) == len(value)
    for term in answer["trace"]:
        assert term["formula"]
        assert term["unit"]
        assert term["source"]
        for given in term["inputs"]:
            known = given in facts or given in value
            assert known or (given.endswith(".*") and f"{given[:-2]}_s" in value), (term["name"], given)
