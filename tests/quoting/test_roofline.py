"""Steps under the roofs: never above one, and what they compute and move by hand."""

from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from costsvc.quoting.roofline import roofline
from tests.docs.refresh import DAY


def shown(catalog: Catalog, **asked: Any) -> Any:
    return roofline(catalog, parse_request(asked), DAY)


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192},
        {"model": "deepseek-v3", "gpu": "h200", "ctx": 32_768},
        {"model": "gemma-3-27b", "gpu": "a100-80gb", "ctx": 65_536},
        {"model": "mixtral-8x7b", "gpu": "l40s", "ctx": 4096, "weights": "fp8"},
    ],
    ids=lambda asked: str(asked["model"]),
)
def test_no_step_is_above_a_roof(catalog: Catalog, asked: dict[str, Any]) -> None:
    answer = shown(catalog, **asked)
    for point in answer["points"]:
        roof = min(answer["peak_flops_per_s"], point["flop_per_byte"] * answer["memory_bytes_per_s"])
        assert 0 < point["flops_per_s"] < roof
    decode, prefill = answer["points"]
    assert decode["flop_per_byte"] < prefill["flop_per_byte"]


def test_a_decode_step_moves_the_weights_and_the_cache_of_all_that_run(catalog: Catalog) -> None:
    asked = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192, "tp": 4, "gpus": 4}
    decode = shown(catalog, **asked)["points"][0]
    quote: Any = make_quote(catalog, parse_request(asked), DAY)
    running = quote["concurrency"]["mean_sequences"]
    # The input table is looked up, not multiplied: 128,256 x 8,192 values of 2 bytes, a quarter each.
    multiplied = quote["memory"]["weights_bytes"] - 128_256 * 8192 * 2 / 4
    cache = running * quote["memory"]["kv_resident_sequence_bytes"]
    assert decode["moved_bytes"] == pytest.approx(multiplied + cache, rel=1e-3)
    scores = running * 80 * 4 * 64 * 128 * 7936 / 4
    assert decode["flops"] == pytest.approx(running * multiplied + scores, rel=1e-3)


def test_of_the_experts_a_decode_step_moves_those_met_where_some_are_sought_more(catalog: Catalog) -> None:
    asked = {"model": "qwen3-30b-a3b", "gpu": "h100", "ctx": 8192, "tp": 1, "gpus": 1, "tpot_ms": 20}
    decode = shown(catalog, **asked)["points"][0]
    quote: Any = make_quote(catalog, parse_request(asked), DAY)
    running = quote["concurrency"]["mean_sequences"]
    evenness = next(one["value"] for one in quote["assumptions"] if one["name"] == "expert_evenness_ratio")
    missed = (1.0 + running * ((1.0 - 8 / 128) ** (-1.0 / evenness) - 1.0)) ** -evenness
    # 48 layers of 128 experts, each three matrices of 2,048 x 768; the input table is looked up.
    experts = 48 * 128 * 3 * 2048 * 768 * 2
    other = quote["memory"]["weights_bytes"] - experts - 151_936 * 2048 * 2
    cache = running * quote["memory"]["kv_resident_sequence_bytes"]
    assert 0.02 < missed < 0.9
    assert decode["moved_bytes"] == pytest.approx(other + experts * (1.0 - missed) + cache, rel=3e-3)


def test_without_a_cache_there_is_no_decode_step(catalog: Catalog) -> None:
    with pytest.raises(InvalidRequest, match="kv_cache"):
        shown(catalog, model="llama-3-70b", gpu="h100", ctx=8192, kv_cache="off")
