"""Public reports in which a cache, a budget or a layout was computed wrong, and the right value of each.

Each row names the report's id in `../shared/data/reports/cases.json` and its link. Some reports are about a
version's own behaviour that this engine does not model; `NOT_MODELLED` says which and why.
"""

import json
from pathlib import Path

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.engine.attention import FullAttention, SlidingAttention
from costsvc.engine.memory import (
    kv_cache_bytes,
    sequence_bytes,
)
from costsvc.engine.replica import Replica
from costsvc.engine.specs import ModelSpec, WindowRule
from costsvc.quoting.capacity import capacity_point
from tests.engine.shapes import by_hand, heads, layered, layout, one

GIB = 2**30
MIB = 2**20
REPORTS = Path(__file__).parents[2].parent / "shared" / "data" / "reports" / "cases.json"
KINDS = ("kv.", "weights.", "concurrency", "roofline.", "log.hybrid", "question.engine", "doc.kv")

# id, link, layers, KV heads, head_dim, bytes per value, tokens, right bytes.
FORMULA = [
    ("B061", "vllm-project/vllm/issues/22291", 28, 4, 128, 2, 3_072, 176_160_768),
    ("B064", "jranaraki/vllm-fit/issues/2", 32, 32, 128, 2, 1, 524_288),
    ("B065", "vllm-project/vllm/pull/29736", 32, 8, 128, 2, 1, 131_072),
    ("B066", "NVIDIA/Model-Optimizer/issues/2482", 40, 8, 128, 2, 1, 163_840),
    ("B067", "NVIDIA/Model-Optimizer/issues/2482", 24, 8, 64, 2, 1, 49_152),
    ("B069", "Osmantic/ODS/pull/3375", 36, 8, 128, 2, 32_768, 4.5 * GIB),
    ("B069", "Osmantic/ODS/pull/3375", 36, 8, 128, 2, 262_144, 36 * GIB),
    ("B070", "b4rtaz/distributed-llama/issues/157", 28, 8, 128, 4, 131_072, 28 * GIB),
    ("B071", "rohitg00/ai-engineering-from-scratch/pull/57", 32, 32, 128, 2, 32_768, 16 * GIB),
    ("B071", "rohitg00/ai-engineering-from-scratch/pull/57", 80, 64, 128, 2, 32_768, 80 * GIB),
    ("B071", "rohitg00/ai-engineering-from-scratch/pull/57", 80, 8, 128, 2, 32_768, 10 * GIB),
    ("B072", "jy-yuan/KIVI/issues/17", 32, 32, 128, 2, 4_196, 2.048828125 * GIB),
    ("B073", "abetlen/llama-cpp-python/issues/66", 60, 52, 128, 4, 512, 1_560 * MIB),
    ("B073", "abetlen/llama-cpp-python/issues/66", 60, 52, 128, 2, 512, 780 * MIB),
    ("B074", "ggml-org/llama.cpp/issues/11200", 64, 8, 128, 1.0625, 32_768, 4_352 * MIB),
    ("B129", "hahnyuan/LLM-Viewer/issues/12", 32, 8, 128, 2, 4_096, 536_870_912),
]

# id, link, model of the catalog, tokens, right bytes (bf16).
SHIPPED = [
    ("B061", "vllm-project/vllm/issues/22291", "qwen2.5-7b", 3_072, 176_160_768),
    ("B063", "LMCache/LMCache/pull/694", "deepseek-v3", 1, 70_272),
    ("B065", "vllm-project/vllm/pull/29736", "llama-3-8b", 1, 131_072),
    ("B066", "NVIDIA/Model-Optimizer/issues/2482", "mistral-small-3-24b", 1, 163_840),
    ("B067", "NVIDIA/Model-Optimizer/issues/2482", "gpt-oss-20b", 1, 49_152),
    ("B071", "rohitg00/ai-engineering-from-scratch/pull/57", "llama-2-7b", 32_768, 16 * GIB),
    ("B071", "rohitg00/ai-engineering-from-scratch/pull/57", "llama-2-70b", 32_768, 10 * GIB),
    ("B088", "alvarobartt/hf-mem/issues/60", "gpt-oss-120b", 1, 73_728),
    ("B090", "lablup/mlxcel/pull/172", "gemma-3-1b", 32_768, 139 * MIB),
]

NOT_MODELLED = {
    "B081": "vLLM's old engine gave each pipeline micro-batch its own pool; later versions do not",
    "B094": "vLLM's grouped cache with the chunk in flight is a version's allocator",
    "B096": "vLLM pads layer groups to one page size",
    "B104": "checkpoints of recurrent state in the block pool",
    "B107": "block size of one DeepSeek-V4 build",
    "B108": "workspace of one DeepSeek-V4 build",
    "B115": "pages of 256 tokens: contexts here fit to the token, an engine's page loses less than a page",
    "B117": "a start-up that measured memory too early",
    "B132": "experts offloaded to the host",
}


@pytest.mark.parametrize(
    ("case", "link", "layers", "kv_heads", "head_dim", "value_bytes", "tokens", "expected"), FORMULA
)
def test_a_cache_has_kv_heads_times_head_width(
    *,
    case: str,
    link: str,
    layers: int,
    kv_heads: int,
    head_dim: int,
    value_bytes: float,
    tokens: int,
    expected: float,
) -> None:
    model = heads(layers, kv_heads, head_dim, query_heads=4 * kv_heads)
    assert kv_cache_bytes(model, float(tokens), value_bytes) == expected, link


@pytest.mark.parametrize(("case", "link", "model", "tokens", "expected"), SHIPPED)
def test_a_shipped_model_caches_what_the_report_says(
    catalog: Catalog, *, case: str, link: str, model: str, tokens: int, expected: float
) -> None:
    assert kv_cache_bytes(catalog.model(model).spec, float(tokens), 2) == expected, link


def test_head_width_is_never_hidden_size_over_heads(catalog: Catalog) -> None:
    wide = [
        (entry.id, group.attention)
        for entry in catalog.models.values()
        for group in entry.spec.groups
        if isinstance(group.attention, FullAttention)
        and group.attention.head_dim * group.attention.query_heads != entry.spec.hidden_size
    ]
    assert len({name for name, _ in wide}) > 20
    for name, attention in wide:
        if not (attention.shares_kv or attention.indexer):
            per_token = attention.kv_heads * (attention.head_dim + attention.values_dim)
            assert float(attention.kv_values(1.0)) == per_token, name


# B076, github.com/tenstorrent/vllm/pull/50: 8 KV heads on 32 devices are one head on each.
@pytest.mark.parametrize("kv_heads", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16, 32])
def test_beyond_its_kv_heads_tensor_parallelism_replicates_the_cache(kv_heads: int, tp: int) -> None:
    replica = by_hand(heads(80, kv_heads, query_heads=64), layout(tp=tp))
    held = max(kv_heads // tp, 1)
    assert one(sequence_bytes(replica, 1.0)) == 80 * held * 2 * 128 * 2
    assert (kv_heads, tp) != (8, 32) or one(sequence_bytes(replica, 1.0)) == 40_960


# B077, github.com/huggingface/transformers/pull/48566 (814 blocks of 256 at TP 1, 3,258 at TP 4); B078,
# github.com/tenstorrent/tt-xla/issues/5728 (7,584 tokens, 30,336 at TP 4); B127, vllm/issues/21348.
@pytest.mark.parametrize(
    ("model", "tp", "alone_tokens", "expected", "tolerance"),
    [("qwen3-32b", 4, 814 * 256, 3_258 * 256, 2e-3), ("llama-3.1-8b", 4, 7_584, 30_336, 1e-3)],
)
def test_sharded_heads_make_the_pool_tp_times_larger(
    catalog: Catalog, *, model: str, tp: int, alone_tokens: int, expected: int, tolerance: float
) -> None:
    token = kv_cache_bytes(catalog.model(model).spec, 1.0, 2)
    pool = {
        "model": model,
        "kv_gib_per_gpu": repr(float(token) * alone_tokens / GIB),
        "max_model_len": "4096",
    }
    assert capacity_point(catalog, pool)["kv_tokens"] == pytest.approx(alone_tokens, abs=1)
    assert capacity_point(catalog, {**pool, "tp": str(tp)})["kv_tokens"] == pytest.approx(
        expected, rel=tolerance
    )


def test_the_fullest_stage_says_how_many_tokens_the_pool_has(catalog: Catalog) -> None:
    # B079, github.com/GeeeekExplorer/nano-vllm/issues/187, and B082: the least of all ranks.
    row = {"model": "llama-3-70b", "kv_gib_per_gpu": "10", "pp": "3", "max_model_len": "8192"}
    per_layer = 2 * 8 * 128 * 2
    assert capacity_point(catalog, row)["kv_tokens"] == int(10 * GIB / (27 * per_layer))


def test_a_hybrid_model_is_bound_by_the_stage_that_has_attention(catalog: Catalog) -> None:
    # Jamba has one attention layer in eight, and it is lighter than the Mamba layers: eight stages of four.
    row = {"model": "jamba-1.5-mini", "pp": "8", "kv_gib_per_gpu": "10", "max_model_len": "65536"}
    rate = capacity_point(catalog, row)["kv_bytes_per_token_per_gpu"]
    assert rate == 2 * 8 * 128 * 2


def windows(rule: WindowRule) -> Replica:
    sliding = SlidingAttention(query_heads=64, kv_heads=8, head_dim=64, window_tokens=128)
    full = FullAttention(query_heads=64, kv_heads=8, head_dim=64)
    return by_hand(layered([(12, sliding, None), (12, full, None)]), window_rule=rule)


# B089, github.com/alvarobartt/hf-mem/pull/70: gpt-oss-20b, 32 x 8,192.
@pytest.mark.parametrize(("rule", "gib"), [("window", 6.09375), ("grouped", 6.09375), ("full", 12.0)])
def test_the_stack_says_whether_blocks_outside_the_window_are_freed(rule: WindowRule, gib: float) -> None:
    assert 32 * one(sequence_bytes(windows(rule), 8_192.0)) == gib * GIB


# B091, github.com/raullenchai/Rapid-MLX/pull/1423: 8 global layers of one KV head of width 512.
def test_only_global_layers_grow_beyond_the_window(catalog: Catalog) -> None:
    gemma = catalog.model("gemma-4-12b").spec
    assert kv_cache_bytes(gemma, 20_001.0, 2) - kv_cache_bytes(gemma, 20_000.0, 2) == 16_384


# B095, github.com/tenstorrent/tt-xla/issues/5860: at 128 tokens a window of 1,024 holds 128.
@pytest.mark.parametrize("tokens", [1, 127, 128, 1_024])
def test_a_window_longer_than_the_context_holds_the_context(tokens: int) -> None:
    window = SlidingAttention(query_heads=8, kv_heads=8, head_dim=64, window_tokens=1_024)
    assert kv_cache_bytes(layered([(4, window, None)]), float(tokens), 2) == kv_cache_bytes(
        heads(4, 8, 64), float(tokens), 2
    )


# B099, github.com/NVIDIA/TensorRT-LLM/pull/5371; B101: attention layers only, plus a state per sequence.
def test_a_hybrid_cache_is_a_state_and_a_rate(catalog: Catalog) -> None:
    spec = catalog.model("nemotron-3-super-120b-a12b").spec
    assert spec.layers == 88
    at = [float(kv_cache_bytes(spec, tokens, 2)) for tokens in (0.0, 1.0, 50_000.0, 100_000.0)]
    assert at[1] - at[0] == 8_192
    assert at[3] - at[2] == 50_000 * 8_192
    assert at[0] == 40 * (1_048_576 * 4 + 30_720 * 2)
    assert at[3] / 100_000 < at[2] / 50_000


# B102, github.com/vllm-project/vllm/issues/40691 (33.04 x 32,768 tokens, not the 290,864 of the line); B112,
# github.com/vllm-project/vllm/pull/13596 (127,626 blocks of 16 at 2,048: 997.08).
@pytest.mark.parametrize("model", ["llama-3.1-8b", "jamba-1.5-mini", "gemma-3-27b", "qwen3-next-80b-a3b"])
def test_tokens_of_a_pool_are_concurrency_times_length(catalog: Catalog, model: str) -> None:
    row = {"model": model, "kv_gib_per_gpu": "77", "max_model_len": "32768"}
    answer = capacity_point(catalog, row)
    concurrency, tokens = answer["max_concurrency"], answer["kv_tokens"]
    assert isinstance(concurrency, float)
    assert tokens == int(concurrency * 32_768)


def test_blocks_over_length_are_the_concurrency(catalog: Catalog) -> None:
    gib = 127_626 * 16 * 131_072 / GIB
    row = {"model": "llama-3.1-8b", "kv_gib_per_gpu": repr(gib), "max_model_len": "2048"}
    answer = capacity_point(catalog, row)
    assert (answer["kv_tokens"], answer["max_concurrency"]) == (2_042_016, pytest.approx(997.08, abs=0.01))


# B128, TensorRT-LLM/pull/3497: 20.0 GiB per GPU for the target alone; its draft of 28 layers adds 7.
@pytest.mark.parametrize(("layers", "gib"), [(80, 20.0), (28, 7.0)])
def test_target_and_draft_each_cache_their_own_layers(layers: int, gib: float) -> None:
    replica = by_hand(heads(layers, 8, query_heads=64), layout(tp=2))
    assert one(sequence_bytes(replica, 131_072.0)) == gib * GIB


# B129, LLM-Viewer/issues/12: decode reads KV heads, not query heads (4 x less).
def test_decode_reads_kv_heads(catalog: Catalog) -> None:
    model: ModelSpec = catalog.model("llama-3-8b").spec
    layers = [model.groups[index].attention for index in model.pattern]
    read = sum(one(layer.read_values(4_096.0, 4_096.0)) for layer in layers if layer is not None)
    assert read * 2 == 536_870_912


def test_every_public_case_of_memory_is_tested_or_named() -> None:
    if not REPORTS.is_file():
        pytest.skip("../shared is not here; the facts of its cases stand in this file's tables")
    known = {case for case, *_ in FORMULA} | {case for case, *_ in SHIPPED} | set(NOT_MODELLED)
    text = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    cases = [case for case in json.loads(REPORTS.read_text("utf-8")) if case["kind"].startswith(KINDS)]
    assert len(cases) > 30
    assert [case["id"] for case in cases if case["id"] not in known and case["id"] not in text] == []
