"""Public reports in which a memory budget was computed wrong, and the right value of each.

Each row names the report's id in `../shared/data/reports/cases.json` and its link.
"""

import math

import numpy as np
import pytest

from costsvc.db.snapshot import Catalog
from costsvc.engine.attention import FullAttention
from costsvc.engine.memory import kv_cache_bytes, memory_budget, sequence_bytes, sequences_that_fit
from costsvc.engine.rows import concurrency_limits
from costsvc.engine.serving import lengths_of
from costsvc.errors import DoesNotFit
from costsvc.quoting.capacity import capacity_point
from tests.engine.shapes import by_hand, card, heads, layered, layout, one, requests, served

GIB = 2**30


# B084, github.com/llm-d-incubation/llm-d-planner/pull/205: 8 layers and the embedding, 4.26 GiB logged.
def test_the_first_of_four_stages_holds_the_embedding(catalog: Catalog) -> None:
    row = {"model": "llama-3.1-8b", "pp": "4", "kv_gib_per_gpu": "1", "weight_dtype": "bf16"}
    weights = capacity_point(catalog, row)["weights_gib_per_gpu"]
    assert weights == pytest.approx((8 * 218_112_000 + 525_336_576) * 2 / GIB, rel=1e-4)
    assert weights == pytest.approx(4.229, rel=1e-3)


# B085, github.com/modular/modular/issues/6268: activations are on every rank, 4 x 21 - 16 - 4 x 5 = 48 GB.
def test_activations_are_taken_on_every_rank() -> None:
    model = layered([(1, FullAttention(query_heads=32, kv_heads=8, head_dim=128), None)], extra_parameters=0)
    bare = by_hand(model, layout(tp=4))
    missing = int(16e9 / 2 - 4 * one(bare.weight_bytes) / 2)
    at_one = one(memory_budget(by_hand(model, layout(tp=4), activation_ratio=1.0)).activation_bytes)
    model = layered(
        [(1, FullAttention(query_heads=32, kv_heads=8, head_dim=128), None)], extra_parameters=missing
    )
    replica = by_hand(
        model,
        layout(tp=4),
        activation_ratio=5e9 / at_one,
        memory_utilization_share=21e9 / card().usable_memory_bytes,
        runtime_bytes=0.0,
        collective_buffer_bytes=0.0,
    )
    assert 4 * one(memory_budget(replica).kv_bytes) == pytest.approx(48e9, rel=1e-4)


# B110, vllm/issues/10517 (23,648 tokens, 0.82 x); B118, TensorRT-LLM/issues/2268 (631 blocks of 64); B125,
# llm-d-planner/pull/205 (fp32 doubles the bytes); B127, vllm/issues/21348 (367 k tokens at TP 4).
@pytest.mark.parametrize(
    ("row", "tokens", "tolerance"),
    [
        ({"model": "llama-3.1-8b", "kv_gib_per_gpu": "2.89", "max_model_len": "29000"}, 23_648, 2e-3),
        (
            {"model": "llama-2-7b", "kv_gib_per_gpu": repr(21.89 * 0.9), "max_model_len": "4096"},
            631 * 64,
            2e-3,
        ),
        ({"model": "llama-3.1-8b", "kv_gib_per_gpu": "42.8", "kv_dtype": "fp32"}, 175_296, 5e-4),
        (
            {"model": "qwen3-235b-a22b", "kv_gib_per_gpu": "16.46", "tp": "4", "kv_dtype": "bf16"},
            367_224,
            1e-3,
        ),
    ],
    ids=["B110", "B118", "B125", "B127"],
)
def test_a_budget_over_bytes_per_token_is_the_logged_pool(
    catalog: Catalog, row: dict[str, str], tokens: int, tolerance: float
) -> None:
    assert capacity_point(catalog, row)["kv_tokens"] == pytest.approx(tokens, rel=tolerance)


def test_trt_llm_takes_a_share_of_what_is_free() -> None:
    # B118: 0.9 of the free 21.89 GiB, whatever the weights; 524,288 B/token make 630.4 blocks of 64.
    replica = by_hand(heads(32, 32), memory_rule="of-free", memory_utilization_share=0.9)
    budget = memory_budget(replica)
    taken = budget.weight_bytes + budget.activation_bytes + budget.runtime_bytes + budget.collective_bytes
    free = one(budget.usable_bytes - taken)
    assert one(budget.kv_bytes) == pytest.approx(0.9 * free)
    assert math.ceil(21.89 * GIB * 0.9 / one(sequence_bytes(replica, 64.0))) == 631


# B120, TensorRT-LLM/issues/224: 8,348 blocks of 16 for Llama-2-7B would need 65.22 GiB on one A10.
def test_what_a_card_cannot_hold_is_not_believed(catalog: Catalog) -> None:
    needed = float(kv_cache_bytes(catalog.model("llama-2-7b").spec, 8_348.0 * 16, 2))
    assert needed / GIB == pytest.approx(65.22, rel=1e-3)
    there = capacity_point(catalog, {"model": "llama-2-7b", "gpu": "a10", "max_model_len": "4096"})
    assert isinstance(there["kv_gib_per_gpu"], float)
    assert 0 < there["kv_gib_per_gpu"] * GIB < needed / 4


# B121, vllm/issues/23278: 65.97 GiB of weights left -2.14 GiB.
def test_a_negative_budget_holds_nothing(catalog: Catalog) -> None:
    replica = served("llama-3-70b", weights="bf16")
    lengths = lengths_of(requests(1_000, 24))
    budget = memory_budget(replica)
    assert one(budget.kv_bytes) < 0
    assert float(np.ravel(sequences_that_fit(replica, budget, lengths))[0]) == 0
    assert np.isnan(concurrency_limits(replica, lengths, budget)["memory"]).all()
    with pytest.raises(DoesNotFit, match=r"leaves no memory for a cache on 1 .*Raise tp or pp"):
        capacity_point(catalog, {"model": "llama-3-70b", "gpu": "h100", "weight_dtype": "bf16"})
