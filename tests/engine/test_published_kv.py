"""Published cache sizes, from shapes written out here and from the shipped catalog alike."""

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.engine.attention import FullAttention, LatentAttention, SlidingAttention
from costsvc.engine.memory import kv_cache_bytes, sequence_bytes, wasted_share
from costsvc.engine.operators import peak_flops_per_s
from costsvc.engine.specs import ModelSpec
from tests.engine.shapes import BF16, by_hand, heads, layered, layout, one, served

MLA = LatentAttention(
    query_heads=128, latent_dim=512, rope_dim=64, nope_dim=128, value_dim=128, query_latent_dim=1536
)
DEEPSEEK_V3 = layered([(61, MLA, None)])
GEMMA_3_27B = layered(
    [
        (52, SlidingAttention(query_heads=32, kv_heads=16, head_dim=128, window_tokens=1024), None),
        (10, FullAttention(query_heads=32, kv_heads=16, head_dim=128), None),
    ]
)
GPT_OSS_120B = layered(
    [
        (18, SlidingAttention(query_heads=64, kv_heads=8, head_dim=64, window_tokens=128), None),
        (18, FullAttention(query_heads=64, kv_heads=8, head_dim=64), None),
    ]
)

# C. Zhao et al., "Insights into DeepSeek-V3," ISCA 2025, arXiv:2505.09343, table 1 (bf16), and the
# configurations as released: 2 x 80 layers x 8 heads x 128 x 2 B; 126 layers; 61 x (512 + 64) x 2 B.
BYTES_OF_ONE_TOKEN = [
    pytest.param("llama-3-70b", heads(80, 8), 327_680, id="llama-3-70b"),
    pytest.param("llama-3.1-405b", heads(126, 8), 516_096, id="llama-3.1-405b"),
    pytest.param("deepseek-v3", DEEPSEEK_V3, 70_272, id="deepseek-v3"),
    pytest.param("qwen2.5-72b", heads(80, 8), 327_680, id="qwen2.5-72b"),
    pytest.param("falcon-7b", heads(32, 1, head_dim=64), 8_192, id="falcon-7b, one KV head"),
]

# Computed from the released configurations: full layers grow, window layers stop at 1,024 or 128.
BYTES_OF_A_SEQUENCE = [
    pytest.param("llama-3-70b", heads(80, 8), 8_192, 2_684_354_560, id="llama-3-70b"),
    pytest.param("gemma-3-27b", GEMMA_3_27B, 8_192, 1_107_296_256, id="gemma-3-27b, 1.107 GB"),
    pytest.param("gemma-3-27b", GEMMA_3_27B, 131_072, 11_173_625_856, id="gemma-3-27b, 11.17 GB"),
    pytest.param("gpt-oss-120b", GPT_OSS_120B, 8_192, 306_708_480, id="gpt-oss-120b, 0.307 GB"),
    pytest.param("gpt-oss-120b", GPT_OSS_120B, 131_072, 4_836_556_800, id="gpt-oss-120b, 4.84 GB"),
]


@pytest.mark.parametrize(("name", "spec", "expected_bytes"), BYTES_OF_ONE_TOKEN)
def test_a_token_takes_the_published_bytes(
    catalog: Catalog, name: str, spec: ModelSpec, expected_bytes: int
) -> None:
    for model in (spec, catalog.model(name).spec):
        assert kv_cache_bytes(model, 1.0, BF16.value_bytes) == expected_bytes
        grown = kv_cache_bytes(model, 4001.0, 2) - kv_cache_bytes(model, 4000.0, 2)
        assert grown == expected_bytes


@pytest.mark.parametrize(("name", "spec", "tokens", "expected_bytes"), BYTES_OF_A_SEQUENCE)
def test_a_sequence_takes_the_published_bytes(
    catalog: Catalog, name: str, spec: ModelSpec, tokens: int, expected_bytes: int
) -> None:
    for model in (spec, catalog.model(name).spec):
        assert kv_cache_bytes(model, float(tokens), BF16.value_bytes) == expected_bytes


def test_thirty_two_sequences_of_llama_3_70b_take_80_gib(catalog: Catalog) -> None:
    alone = kv_cache_bytes(catalog.model("llama-3-70b").spec, 8192.0, 2)
    assert 32 * alone == 80 * 2**30
    assert alone < 40e9 / 14
    assert 32 * alone < 1.3e12 / 14


def test_the_latent_is_held_whole_by_every_tensor_parallel_rank() -> None:
    for model in (by_hand(DEEPSEEK_V3, layout(tp=8)), served("deepseek-v3", tp=8)):
        assert one(sequence_bytes(model, 1.0)) == 70_272


def test_one_kv_head_is_held_whole_by_every_tensor_parallel_rank() -> None:
    alone, eight = (by_hand(heads(32, 1, head_dim=64, query_heads=8), layout(tp=tp)) for tp in (1, 8))
    assert one(sequence_bytes(alone, 1.0)) == one(sequence_bytes(eight, 1.0)) == 8_192


# W. Kwon et al., SOSP 2023, section 3: slots that are reserved and stay unused.
@pytest.mark.parametrize(("limit", "used", "share"), [(8_192, 800, 0.902), (32_768, 1_000, 0.969)])
def test_contiguous_slabs_are_mostly_empty(limit: int, used: int, share: float) -> None:
    assert wasted_share(limit, used) == pytest.approx(share, abs=5e-4)
    assert round(float(wasted_share(limit, used)), 3) == share


def test_peaks_are_dense(catalog: Catalog) -> None:
    # NVIDIA H100 datasheet, SXM column: 1,979 TFLOP/s bf16 "with sparsity", so half of it.
    h100 = catalog.gpu("h100").spec
    assert peak_flops_per_s(h100, BF16) == pytest.approx(989e12, rel=1e-3)
    assert h100.dense_flops_per_s["bf16"] < 1000e12
    assert h100.dense_flops_per_s["fp8"] == pytest.approx(1979e12, rel=1e-3)
