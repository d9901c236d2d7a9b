"""What cannot be priced says what is needed, what is there and what would help; and what it says is true."""

import re
from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.errors import (
    Ambiguous,
    ContextTooLong,
    CostsvcError,
    DoesNotFit,
    InvalidRequest,
    NoPriceInForce,
    NotInCatalog,
    SloUnreachable,
    UnsupportedLayout,
)
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from tests.engine.shapes import TODAY


def quote(catalog: Catalog, **given: Any) -> Any:
    return make_quote(catalog, parse_request(given), TODAY)


TOO_LARGE: list[dict[str, Any]] = [
    {"model": "llama-3-70b", "gpu": "h100", "ctx": 8_192, "gpus": 1},
    {"model": "llama-3.1-405b", "gpu": "h200", "ctx": 131_072, "tp": 4, "pp": 1},
    {"model": "deepseek-v3", "gpu": "h100", "ctx": 4_096, "gpus": 8},
    {"model": "llama-3.1-8b", "gpu": "l4", "ctx": 131_072, "gpus": 1},
    {"model": "qwen3-32b", "gpu": "rtx-4090", "ctx": 32_768, "gpus": 2, "weights": "fp8"},
    {"model": "llama-2-7b", "gpu": "rtx-4090", "ctx": 4_096, "gpus": 1, "kv": "fp32", "weights": "fp32"},
    {"model": "jamba-1.5-mini", "gpu": "a100-sxm-80gb", "ctx": 131_072, "gpus": 1},
]


@pytest.mark.parametrize("given", TOO_LARGE, ids=lambda given: f"{given['model']} on {given['gpu']}")
def test_what_does_not_fit_says_what_would_and_it_does(catalog: Catalog, given: dict[str, Any]) -> None:
    with pytest.raises(DoesNotFit) as caught:
        quote(catalog, **given)
    message, details = caught.value.message, caught.value.details
    assert details["needed_bytes_per_gpu"] > details["available_bytes_per_gpu"] > 0  # type: ignore[operator]
    assert f"{given['ctx']:,} tokens of context needs" in message
    assert "GB of KV cache" in message
    free = {name: value for name, value in given.items() if name not in {"gpus", "tp", "pp"}}
    suggested = re.search(r"It fits on gpus=(\d+)\.", message)
    assert suggested, "another number of GPUs fits all of these"
    answer = quote(catalog, **free, gpus=int(suggested[1]), slo="batch")
    assert answer["deployment"]["gpus"] == int(suggested[1])
    assert answer["memory"]["kv_budget_bytes"] >= answer["memory"]["kv_sequence_bytes"]
    longest = re.search(r"the longest context is ctx=(\d+)\.", message)
    assert (longest is not None) is (details["longest_context_tokens"] > 1)  # type: ignore[operator]
    if longest:
        fits = int(longest[1])
        assert fits == details["longest_context_tokens"] < given["ctx"]
        quote(catalog, **{**given, "ctx": fits, "slo": "batch"})
        with pytest.raises(DoesNotFit):
            quote(catalog, **{**given, "ctx": min(fits + 2, given["ctx"]), "slo": "batch"})


def test_a_number_of_gpus_that_was_asked_for_is_what_to_change(catalog: Catalog) -> None:
    with pytest.raises(DoesNotFit, match=r"on each of 8 .* It fits on gpus=16\.") as caught:
        quote(catalog, model="deepseek-v3", gpu="h100", ctx=4_096, gpus=8)
    assert caught.value.field == "gpus"


def test_a_model_that_fits_nowhere_says_so(catalog: Catalog) -> None:
    with pytest.raises(DoesNotFit) as caught:
        quote(catalog, model="kimi-k2", gpu="t4", ctx=4_096, weights="bf16")
    assert caught.value.field == "gpu"
    assert "It fits on" not in caught.value.message
    assert "choose a GPU with more memory" in caught.value.message


@pytest.mark.parametrize(
    ("objective", "field", "unit"),
    [("tpot_ms", "tpot_ms", "fastest_tpot_ms"), ("ttft_ms", "ttft_ms", "soonest_ttft_ms")],
)
def test_an_objective_out_of_reach_names_the_nearest_and_it_is_reached(
    catalog: Catalog, objective: str, field: str, unit: str
) -> None:
    given: dict[str, Any] = {"model": "llama-3-70b", "gpu": "a100-sxm-80gb", "ctx": 8_192}
    with pytest.raises(SloUnreachable) as caught:
        quote(catalog, **given, **{objective: 0.5, "slo": "batch"})
    assert caught.value.field == field
    assert f"{'TPOT' if objective == 'tpot_ms' else 'TTFT'} <= 0.5 ms" in caught.value.message
    nearest = caught.value.details[unit]
    assert isinstance(nearest, float)
    reached = quote(catalog, **given, **{objective: nearest * 1.001, "slo": "batch"})
    assert reached["latency"][objective] <= nearest * 1.0011
    assert reached["concurrency"]["limit"] >= 1
    with pytest.raises(SloUnreachable):
        quote(catalog, **given, **{objective: nearest * 0.9, "slo": "batch"})


def test_an_assumed_objective_out_of_reach_is_relaxed_with_a_warning(catalog: Catalog) -> None:
    given: dict[str, Any] = {"model": "llama-3.1-405b", "gpu": "l4", "ctx": 4_096, "weights": "bf16"}
    answer = quote(catalog, **given)
    assert answer["request"]["tpot_ms"] > 50 or any(
        "max_num_batched_tokens=" in w for w in answer["warnings"]
    )
    assert answer["latency"]["tpot_ms"] <= answer["request"]["tpot_ms"] * (1 + 1e-6)
    assert answer["warnings"]
    with pytest.raises(SloUnreachable):
        quote(catalog, **given, tpot_ms=1)


def test_a_context_beyond_the_model_names_the_longest_and_it_works(catalog: Catalog) -> None:
    with pytest.raises(ContextTooLong, match="takes at most 8,192") as caught:
        quote(catalog, model="llama-3-70b", gpu="h100", ctx=8_193)
    assert (caught.value.field, caught.value.details["longest_tokens"]) == ("ctx", 8_192)
    quote(catalog, model="llama-3-70b", gpu="h100", ctx=8_192)


def test_a_profile_beyond_the_model_is_not_told_of_a_ctx_that_nobody_gave(catalog: Catalog) -> None:
    profile = {"input_tokens": 7_000, "output_tokens": 512, "max_context_tokens": 9_000}
    with pytest.raises(
        ContextTooLong, match=r"^The longest request of the profile is 9,000 tokens"
    ) as caught:
        quote(catalog, model="llama-3-70b", gpu="h100", profile=profile)
    assert caught.value.field == "profile"
    assert "ctx" not in caught.value.message


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        (
            {"model": "llama-3-70b", "tp": 3},
            "tp",
            "does not divide the 64 query heads of llama-3-70b. Choose tp from 1, 2, 4",
        ),
        ({"model": "deepseek-v3", "tp": 3}, "tp", "does not divide the 128 heads"),
        (
            {"model": "falcon-7b", "tp": 2},
            "tp",
            "does not divide the 71 query heads of falcon-7b. Choose tp from 1.",
        ),
        ({"model": "llama-3-70b", "pp": 81}, "pp", "more stages than the 80 layers"),
        ({"model": "mixtral-8x7b", "tp": 4, "ep": 3}, "ep", "does not divide tp x dp = 4"),
        ({"model": "llama-3-70b", "gpus": 8, "tp": 4, "pp": 4}, "gpus", "gpus is tp x pp x dp"),
    ],
)
def test_a_layout_that_cannot_be_says_which_can(
    catalog: Catalog, given: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(UnsupportedLayout) as caught:
        quote(catalog, gpu="h100", ctx=2_048, **given)
    assert words in caught.value.message
    assert caught.value.field == field


def test_kv_heads_and_ranks_must_divide_one_another(catalog: Catalog) -> None:
    # Qwen2.5-14B has 40 query heads and 8 KV heads: 5 and 20 divide the first but not the second.
    with pytest.raises(UnsupportedLayout, match=r"8 KV heads .* do not divide one another"):
        quote(catalog, model="qwen2.5-14b", gpu="h100", ctx=2_048, tp=5)


def test_a_type_without_a_kernel_is_refused(catalog: Catalog) -> None:
    with pytest.raises(
        UnsupportedLayout, match=r"has no kernel for nvfp4 weights on .* matrix units compute"
    ) as caught:
        quote(catalog, model="llama-3.1-8b", gpu="h100", ctx=2_048, weights="nvfp4", stack="tensorrt-llm")
    assert caught.value.field == "weights"
    weak = quote(catalog, model="llama-3.1-8b", gpu="h100", ctx=2_048, weights="nvfp4", stack="vllm")
    assert any("computes nvfp4 weights in 16 bit" in warning for warning in weak["warnings"])


@pytest.mark.parametrize(
    ("given", "kind", "field", "words"),
    [
        ({"model": "llama-9"}, NotInCatalog, "model", "Nearest: "),
        ({"gpu": "h1000"}, NotInCatalog, "gpu", "Nearest: "),
        ({"gpu": "a100"}, Ambiguous, "gpu", "a100-sxm-40gb, a100-sxm-80gb"),
        ({"weights": "fp7"}, NotInCatalog, "weights", "Nearest: "),
        ({"kv": "fp7"}, NotInCatalog, "dtype", "Nearest: "),
        ({"stack": "vlm"}, NotInCatalog, "stack", "vllm"),
        ({"model": "模型"}, NotInCatalog, "model", "Nothing in the catalog is close"),
        ({"provider": "Nobody"}, NotInCatalog, "provider", "No provider 'Nobody'"),
        ({"market": "reserved-3y", "region": "moon"}, NoPriceInForce, "region", ""),
        ({"as_of": "2001-01-01"}, NoPriceInForce, "as_of", ""),
    ],
)
def test_a_name_that_means_nothing_or_two_things_says_so(
    catalog: Catalog, *, given: dict[str, Any], kind: type[CostsvcError], field: str, words: str
) -> None:
    with pytest.raises(kind) as caught:
        quote(catalog, **{"model": "llama-3.1-8b", "gpu": "h100", "ctx": 2_048, **given})
    assert words in caught.value.message
    assert kind is NoPriceInForce or caught.value.field == field


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"prefix_tokens": 7_680}, "A request needs at least one token of its own"),
        ({"turns": 60}, "lower turns"),
        ({"turns": 20, "prefix_tokens": 4_000}, "but the mean prompt has 7680"),
    ],
)
def test_a_prefix_that_fills_the_prompt_is_refused(
    catalog: Catalog, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        quote(catalog, model="llama-3-70b", gpu="h100", ctx=8_192, **given)
    assert words in caught.value.message
    assert caught.value.field in given


def test_one_card_is_no_each_and_a_profile_has_no_ctx_to_lower(catalog: Catalog) -> None:
    with pytest.raises(DoesNotFit) as caught:
        quote(catalog, model="llama-3.1-8b", gpu="l4", gpus=1, profile="long-document")
    assert "GB on one NVIDIA L4 (tp=1" in caught.value.message
    longest = caught.value.details["longest_context_tokens"]
    assert f"the longest context of a profile's requests is {longest:,} tokens." in caught.value.message
    assert "ctx=" not in caught.value.message
