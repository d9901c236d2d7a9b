"""Comparisons against quotes: the same numbers, in order, nothing better left out."""

from collections.abc import Mapping
from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest, NotInCatalog
from costsvc.quoting.compare import CompareRequest, compare
from costsvc.quoting.curve import CurveRequest, curve
from costsvc.quoting.frontier import FrontierRequest, frontier
from costsvc.quoting.given import parse_filter
from costsvc.quoting.load import profile_of
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from costsvc.quoting.tables.comparisons import frontier_table
from costsvc.quoting.what_if import WhatIfRequest, what_if
from tests.docs.refresh import DAY

WORKLOAD = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192}


def quoted(catalog: Catalog, asked: Mapping[str, Any]) -> Any:
    return make_quote(catalog, parse_request(asked), DAY)


def test_each_row_of_a_comparison_is_its_quote(catalog: Catalog) -> None:
    asked = {**WORKLOAD, "gpu": "h100,mi300x", "weights": "bf16,fp8", "modes": "colocated,disaggregated"}
    answer: Any = compare(catalog, parse_filter(CompareRequest, asked), DAY)
    assert answer["compared"] == 8 == len(answer["items"])
    for row in answer["items"]:
        names = ("gpu", "weights", "mode")
        quote = quoted(catalog, {**WORKLOAD, **{name: row[name] for name in names}})
        assert row["request_usd"] == quote["cost"]["request_usd"]
        for name in ("input", "cached_input", "output", "blended"):
            assert float(row[f"{name}_usd_per_mtok"]) == pytest.approx(
                float(quote["prices"][name]["usd_per_mtok"])
            )
        for bound in ("low", "high"):
            assert float(row[f"blended_{bound}_usd_per_mtok"]) == pytest.approx(
                float(quote["prices"]["blended"][bound])
            )
        assert row["gpu_price_providers"] == quote["cost"]["gpu_price"]["providers"]
        assert (row["gpus"], row["concurrency"]) == (
            quote["deployment"]["gpus"],
            quote["concurrency"]["limit"],
        )
    costs = [float(row["request_usd"]) for row in answer["items"]]
    assert costs == sorted(costs)


@pytest.mark.parametrize(
    ("asked", "providers", "basis"),
    [
        ({"gpu": "a10g"}, 1, "median of one provider's offers"),
        ({"price_usd_per_gpu_hour": 2}, None, "given in the request"),
    ],
)
def test_a_price_of_one_seller_is_told_from_one_of_many(
    catalog: Catalog, asked: dict[str, Any], providers: int | None, basis: str
) -> None:
    answer: Any = compare(
        catalog, parse_filter(CompareRequest, {**WORKLOAD, "model": "llama-3-8b", **asked}), DAY
    )
    (row,) = answer["items"]
    assert row["gpu_price_providers"] == providers
    assert row["gpu_price_basis"].startswith(basis)


def test_a_configuration_that_cannot_run_says_why(catalog: Catalog) -> None:
    asked = {**WORKLOAD, "gpu": "h100,l4", "gpus": "1"}
    answer: Any = compare(catalog, parse_filter(CompareRequest, asked), DAY)
    assert {row["gpu"] for row in answer["refused"]} == {"h100-sxm", "l4"}
    assert all("GB" in row["why"] for row in answer["refused"])


def test_any_compares_every_card_with_a_price(catalog: Catalog) -> None:
    asked = {**WORKLOAD, "model": "llama-3-8b", "gpu": "any", "limit": "3", "rps": "2"}
    answer: Any = compare(catalog, parse_filter(CompareRequest, asked), DAY)
    assert len(answer["items"]) == 3 < answer["compared"]
    assert float(answer["items"][0]["usd_per_month"]) > 0


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"gpu": ","}, InvalidRequest),
        ({"gpu": "h100,h101"}, NotInCatalog),
        ({"weights": "fp9"}, NotInCatalog),
        ({"modes": "both"}, InvalidRequest),
        ({"limit": 0}, InvalidRequest),
        (
            {
                "gpu": "any",
                "weights": "bf16,fp16,fp8,int8,int4,nvfp4",
                "kv": "bf16,fp8,int8",
                "modes": "colocated",
            },
            InvalidRequest,
        ),
    ],
    ids=str,
)
def test_lists_that_make_no_sense_are_refused(
    catalog: Catalog, wrong: Mapping[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        compare(catalog, parse_filter(CompareRequest, {**WORKLOAD, **wrong}), DAY)


def test_a_point_of_the_frontier_costs_what_a_quote_at_its_speed_costs(catalog: Catalog) -> None:
    answer: Any = frontier(catalog, parse_filter(FrontierRequest, WORKLOAD), DAY)
    assert len(answer["front"]) > 10
    for point in answer["front"][:: len(answer["front"]) // 5]:
        layout = {name: point[name] for name in ("gpus", "tp", "pp", "dp", "ep")}
        quote = quoted(catalog, {**WORKLOAD, **layout, "tpot_ms": point["tpot_ms"] * (1 + 1e-9)})
        assert float(quote["prices"]["blended"]["usd_per_mtok"]) == pytest.approx(
            float(point["blended_usd_per_mtok"]), rel=1e-4
        )


def test_nothing_beats_a_point_of_the_frontier(catalog: Catalog) -> None:
    asked = {**WORKLOAD, "gpu": "h100,h200,b200"}
    answer: Any = frontier(catalog, parse_filter(FrontierRequest, asked), DAY)
    front = [(p["output_tok_s_per_user"], float(p["blended_usd_per_mtok"])) for p in answer["front"]]
    assert front == sorted(front)
    each = [point for points in answer["by_gpu"].values() for point in points]
    for point in each:
        speed, price = point["output_tok_s_per_user"], float(point["blended_usd_per_mtok"])
        assert any(s >= speed and p <= price for s, p in front)
        assert not any(speed > s and price < p for s, p in front)
    assert {point["bound"] for point in each} >= {"tpot"}


def test_a_curve_is_the_quote_of_each_context(catalog: Catalog) -> None:
    answer: Any = curve(catalog, parse_filter(CurveRequest, {**WORKLOAD, "points": 5, "to_ctx": 8000}), DAY)
    assert answer["items"][0]["ctx"] == 1024
    for row in answer["items"]:
        quote = quoted(catalog, {**WORKLOAD, "ctx": row["ctx"], "output": 512})
        for name in ("input", "cached_input", "output", "blended"):
            assert float(row[f"{name}_usd_per_mtok"]) == pytest.approx(
                float(quote["prices"][name]["usd_per_mtok"])
            )
        assert row["concurrency"] == quote["concurrency"]["limit"]
        assert row["ttft_ms"] == pytest.approx(quote["latency"]["ttft_ms"])


def test_a_curve_holds_the_marked_context_and_its_cliffs(catalog: Catalog) -> None:
    asked = {**WORKLOAD, "model": "llama-3.1-70b", "ctx": 5000, "slo": "batch"}
    answer: Any = curve(catalog, parse_filter(CurveRequest, asked), DAY)
    assert 5000 in [row["ctx"] for row in answer["items"]]
    assert {"window_ends", "concurrency_halves"} <= {cliff["kind"] for cliff in answer["cliffs"]}


def test_a_curve_with_shared_prefixes_is_still_the_quote(catalog: Catalog) -> None:
    asked = {**WORKLOAD, "prefix_tokens": 500, "points": 2, "from_ctx": 4096, "to_ctx": 8192}
    answer: Any = curve(catalog, parse_filter(CurveRequest, asked), DAY)
    first = quoted(catalog, {**WORKLOAD, "prefix_tokens": 500, "ctx": 4096, "output": 512})
    assert answer["items"][0]["request_usd"] == first["cost"]["request_usd"]


def test_the_table_of_a_frontier_marks_the_front_of_all_and_says_what_was_refused(catalog: Catalog) -> None:
    asked = {**WORKLOAD, "gpu": "h100,h200,l4", "gpus": 8, "concurrencies": 3}
    answer: Any = frontier(catalog, parse_filter(FrontierRequest, asked), DAY)
    table = list(frontier_table(answer).rows)
    assert [row for row in table if not row["error"]]
    front = [row["blended_usd_per_mtok"] for row in table if row.get("on_front")]
    assert sorted(front) == sorted(point["blended_usd_per_mtok"] for point in answer["front"])
    assert len(front) < len([row for row in table if not row["error"]])
    assert [row["error"] for row in table if row["error"]] == [one["why"] for one in answer["refused"]]


@pytest.mark.parametrize("profile", ["rag", "chat", "batch-summarisation"])
def test_a_curve_along_a_profile_is_the_quote_of_the_stretched_profile(
    catalog: Catalog, profile: str
) -> None:
    asked = {"model": "llama-3.1-70b", "gpu": "h100", "profile": profile}
    answer: Any = curve(
        catalog, parse_filter(CurveRequest, {**asked, "points": 2, "from_ctx": 8192, "to_ctx": 24_000}), DAY
    )
    mark, longest = answer["items"]
    assert (mark["ctx"], mark["times"]) == (answer["ctx"], 1.0) == (8192, 1.0)
    assert mark["request_usd"] == quoted(catalog, asked)["cost"]["request_usd"]
    traffic, _ = profile_of(catalog, profile)
    longer = quoted(catalog, {**asked, "profile": traffic.stretched(longest["times"], 24_000)})
    assert longest["request_usd"] == longer["cost"]["request_usd"]
    assert longer["request"]["ctx"] == 24_000
    assert float(longest["request_usd"]) > float(mark["request_usd"])


def test_a_profile_too_short_for_its_history_has_a_reason_in_its_row(catalog: Catalog) -> None:
    asked = {"model": "llama-3.1-70b", "gpu": "h100", "profile": "chat", "points": 2, "to_ctx": 8192}
    answer: Any = curve(catalog, parse_filter(CurveRequest, asked), DAY)
    assert "Raise the prompt" in answer["items"][0]["why"]
    assert answer["items"][-1]["request_usd"]


def test_variants_of_attention_keep_what_their_heads_say(catalog: Catalog) -> None:
    answer: Any = what_if(catalog, parse_filter(WhatIfRequest, WORKLOAD), DAY)
    by_id = {row["id"]: row for row in answer["items"]}
    released = by_id["released"]["kv_bytes_per_sequence"]
    assert released == 2_684_354_560
    assert by_id["mha"]["kv_bytes_per_sequence"] == 8 * released
    assert by_id["mqa"]["kv_bytes_per_sequence"] == released / 8
    assert by_id["mla"]["kv_bytes_per_sequence"] == 80 * 576 * 2 * 8192
    assert by_id["sliding"]["kv_bytes_per_sequence"] == released / 2
    assert by_id["kv_fp8"]["kv_bytes_per_sequence"] == released / 2
    # Keys and values of 56 more heads of 128 in 80 layers.
    assert by_id["mha"]["parameters"] - by_id["released"]["parameters"] == 80 * 2 * 56 * 128 * 8192
    assert by_id["mqa"]["users_memory_holds_per_gpu"] > by_id["mha"]["users_memory_holds_per_gpu"]


def test_counterfactual_caches_are_their_quotes(catalog: Catalog) -> None:
    answer: Any = what_if(catalog, parse_filter(WhatIfRequest, WORKLOAD), DAY)
    by_id = {row["id"]: row for row in answer["items"]}
    for variant, changes in (
        ("no_cache", {"kv_cache": "off"}),
        ("contiguous", {"allocation": "contiguous"}),
        ("kv_fp8", {"kv": "fp8"}),
        ("prefix_shared", {"prefix_tokens": 3840}),
    ):
        assert (
            by_id[variant]["request_usd"] == quoted(catalog, {**WORKLOAD, **changes})["cost"]["request_usd"]
        )
    assert by_id["no_cache"]["times_released"] > 10
    assert by_id["no_cache"]["kv_bytes_per_sequence"] == 0


def test_kv_heads_must_divide_the_query_heads(catalog: Catalog) -> None:
    with pytest.raises(InvalidRequest, match="64 query heads"):
        what_if(catalog, parse_filter(WhatIfRequest, {**WORKLOAD, "groups": "7"}), DAY)
