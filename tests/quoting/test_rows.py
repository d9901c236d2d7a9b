"""Rows of the tables that `predict` and `capacity` read: their schema, blanks, floats and refusals."""

import math
from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.errors import CostsvcError, DoesNotFit, InvalidRequest, NotInCatalog, UnsupportedLayout
from costsvc.quoting.capacity import capacity_point
from costsvc.quoting.predict import predict_point

PREDICTED = [
    "output_tok_s",
    "output_tok_s_low",
    "output_tok_s_high",
    "ttft_ms",
    "tpot_ms",
    "concurrency",
    "bound",
    "extrapolated",
]
COUNTED = [
    "kv_bytes_per_token_per_gpu",
    "weights_gib_per_gpu",
    "kv_gib_per_gpu",
    "kv_tokens",
    "max_concurrency",
]
COLUMNS = [
    *("id", "model", "gpu", "n_gpus", "tp", "pp", "ep", "dp", "weight_dtype", "kv_dtype", "engine"),
    *("engine_version", "isl", "osl", "cached_tokens", "concurrency", "rps", "max_batch", "mode"),
]
ROW = {
    **dict.fromkeys(COLUMNS, ""),
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "gpu": "h100-sxm",
    "isl": "1024",
    "osl": "128",
    "concurrency": "32",
}
SPLIT = {
    "model_path": "deepseek-ai/DeepSeek-V3",
    "system": "h200_sxm",
    "backend": "sglang",
    "precision": "fp8_block",
    "isl": "4096",
    "osl": "512",
    "concurrency": "64",
    "decode_num_workers": "2",
    "decode_tp_size": "8",
    "decode_pp_size": "1",
    "decode_attention_dp_size": "1",
    "decode_moe_ep_size": "8",
}


def predicted(catalog: Catalog, **changes: str) -> Any:
    return predict_point(catalog, {**ROW, **changes})


def test_a_row_gets_every_column_in_order(catalog: Catalog) -> None:
    answer = predicted(catalog)
    assert list(answer) == PREDICTED
    assert 0 < answer["output_tok_s_low"] < answer["output_tok_s"] < answer["output_tok_s_high"]
    assert answer["concurrency"] == 32
    assert isinstance(answer["bound"], str)
    assert isinstance(answer["extrapolated"], bool)
    assert all(math.isfinite(value) for value in answer.values() if isinstance(value, float))


def test_blank_absent_and_written_out_defaults_are_alike(catalog: Catalog) -> None:
    short = {name: value for name, value in ROW.items() if value}
    spelled = {
        **ROW,
        "tp": "1",
        "pp": "1",
        "dp": "1",
        "n_gpus": "1",
        "mode": "continuous",
        "kv_dtype": "bf16",
    }
    assert predict_point(catalog, short) == predict_point(catalog, ROW) == predict_point(catalog, spelled)


def test_numbers_may_be_written_as_floats(catalog: Catalog) -> None:
    floats = {"isl": "1024.0", "osl": "1.28e2", "concurrency": "32.0", "tp": "1.0", "n_gpus": "1.0"}
    assert predicted(catalog, **floats) == predicted(catalog)


def test_more_users_get_more_tokens_and_wait_longer_for_each(catalog: Catalog) -> None:
    answers = [predicted(catalog, concurrency=str(users)) for users in (1, 8, 64)]
    rates, waits = ([answer[name] for answer in answers] for name in ("output_tok_s", "tpot_ms"))
    assert rates == sorted(rates)
    assert waits == sorted(waits)
    assert rates[0] * waits[0] / 1e3 <= 1


def test_blank_concurrency_is_as_many_as_fit(catalog: Catalog) -> None:
    flood = predicted(catalog, concurrency="", mode="offline-maxthroughput")
    assert flood["concurrency"] > 64
    assert flood["output_tok_s"] >= predicted(catalog, concurrency="64")["output_tok_s"]
    capped = predicted(catalog, concurrency="", mode="offline-maxthroughput", max_batch="16")
    assert capped["concurrency"] <= 16
    assert capped["output_tok_s"] < flood["output_tok_s"]


def test_an_open_loop_carries_what_is_offered_up_to_its_limit(catalog: Catalog) -> None:
    calm, flooded = (predicted(catalog, mode="server", concurrency="", rps=rps) for rps in ("2", "1000"))
    assert calm["output_tok_s"] == pytest.approx(2 * 128)
    assert flooded["output_tok_s"] < 1000 * 128
    assert flooded["tpot_ms"] > calm["tpot_ms"]
    assert (calm["bound"], calm["ttft_ms"] > 0, flooded["bound"] != "given", flooded["ttft_ms"]) == (
        *("given", True, True),
        None,
    )
    capped = predicted(catalog, mode="server", concurrency="32", rps="1000")
    assert capped["ttft_ms"] > calm["ttft_ms"]


def test_cached_prompt_tokens_make_a_loop_faster(catalog: Catalog) -> None:
    cold, warm = (predicted(catalog, isl="8000", cached_tokens=cached) for cached in ("0", "7000"))
    assert warm["output_tok_s"] > 1.2 * cold["output_tok_s"]
    assert warm["ttft_ms"] < cold["ttft_ms"]


def test_gpus_without_a_layout_are_tensor_parallel(catalog: Catalog) -> None:
    assert predicted(catalog, n_gpus="4") == predicted(catalog, n_gpus="4", tp="4")
    assert predicted(catalog, n_gpus="4")["tpot_ms"] < predicted(catalog)["tpot_ms"]


def test_a_row_of_two_pools_is_read_in_its_own_schema(catalog: Catalog) -> None:
    answer: Any = predict_point(catalog, SPLIT)
    assert list(answer) == PREDICTED
    assert answer["output_tok_s"] > 0
    with pytest.raises(InvalidRequest, match="model_path is blank"):
        predict_point(catalog, {**SPLIT, "model_path": ""})


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"model": ""}, InvalidRequest, "model is blank; fill it in"),
        ({"gpu": " "}, InvalidRequest, "gpu is blank; fill it in"),
        ({"model": "llama-77"}, NotInCatalog, "No model 'llama-77'"),
        ({"isl": ""}, InvalidRequest, "isl is blank"),
        ({"isl": "many"}, InvalidRequest, "isl is 'many'; write a number"),
        ({"osl": "0"}, InvalidRequest, "osl is '0'; write a number of at least 1"),
        ({"osl": "nan"}, InvalidRequest, "osl is 'nan'"),
        ({"isl": "-5"}, InvalidRequest, "isl is '-5'"),
        ({"tp": "1.5"}, InvalidRequest, "tp is 1.5; write a whole number"),
        ({"tp": "3", "n_gpus": "3"}, UnsupportedLayout, "does not divide the 32 query heads"),
        ({"n_gpus": "3", "tp": "2"}, CostsvcError, ""),
        ({"cached_tokens": "1024"}, InvalidRequest, "at least one token is always computed"),
        ({"mode": "fast"}, InvalidRequest, "mode is 'fast'; it is one of static, continuous"),
        ({"weight_dtype": "fp9"}, NotInCatalog, "No weights 'fp9'"),
        ({"gpu": "l4", "model": "llama-3-70b"}, DoesNotFit, "GB of weights and"),
    ],
)
def test_a_row_that_cannot_be_predicted_says_why(
    catalog: Catalog, changes: dict[str, str], kind: type[CostsvcError], words: str
) -> None:
    with pytest.raises(kind) as caught:
        predicted(catalog, **changes)
    assert words in caught.value.message


def test_capacity_rows_get_every_column_in_order(catalog: Catalog) -> None:
    row = {
        "model": "llama-3.1-8b",
        "gpu": "rtx-3090",
        "gpu_memory_utilization": "0.9",
        "max_model_len": "20000.0",
    }
    answer = capacity_point(catalog, row)
    assert list(answer) == COUNTED
    assert answer["kv_bytes_per_token_per_gpu"] == 131_072
    # vLLM logged 14.99 GiB of weights (B110: github.com/vllm-project/vllm/issues/10517).
    assert answer["weights_gib_per_gpu"] == pytest.approx(14.99, rel=5e-3)
    assert isinstance(answer["kv_tokens"], int)


def test_a_given_pool_replaces_the_budget_and_refuses_nothing(catalog: Catalog) -> None:
    row = {
        "model": "deepseek-v3",
        "gpu": "l4",
        "kv_gib_per_gpu": "10.0",
        "max_model_len": "9000000",
        "tp": "8.0",
    }
    answer = capacity_point(catalog, row)
    assert answer["kv_gib_per_gpu"] == 10.0
    assert answer["kv_tokens"] == int(10 * 2**30 / 70_272)
    assert answer["max_concurrency"] == pytest.approx(10 * 2**30 / 70_272 / 9e6)
    assert capacity_point(catalog, {**row, "gpu": ""})["kv_tokens"] == answer["kv_tokens"]


def test_more_memory_for_the_engine_is_more_cache(catalog: Catalog) -> None:
    row = {"model": "llama-3.1-8b", "gpu": "h100", "engine": "vllm"}
    shares = [
        capacity_point(catalog, {**row, "gpu_memory_utilization": share})["kv_gib_per_gpu"]
        for share in ("0.8", "0.9", "0.95 of total")
    ]
    assert shares == sorted(shares)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("row", "kind", "words"),
    [
        ({"model": "llama-3.1-8b"}, InvalidRequest, "gpu is blank and kv_gib_per_gpu too"),
        ({"gpu": "h100"}, InvalidRequest, "model is blank"),
        ({"model": "llama-3-70b", "gpu": "h100"}, DoesNotFit, "leaves no memory for a cache"),
        ({"model": "llama-3.1-8b", "kv_gib_per_gpu": "-2.14"}, InvalidRequest, "kv_gib_per_gpu is '-2.14'"),
        ({"model": "llama-3.1-8b", "gpu": "h100", "tp": "3"}, UnsupportedLayout, "does not divide"),
        (
            {"model": "llama-3.1-8b", "gpu": "h100", "max_model_len": "0"},
            InvalidRequest,
            "max_model_len is '0'",
        ),
    ],
)
def test_a_capacity_row_that_cannot_be_says_why(
    catalog: Catalog, row: dict[str, str], kind: type[CostsvcError], words: str
) -> None:
    with pytest.raises(kind) as caught:
        capacity_point(catalog, row)
    assert words in caught.value.message
