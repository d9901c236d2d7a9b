"""Cases that a catalog of plain transformers would get wrong, each from a released configuration."""

from collections import Counter

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.engine.attention import (
    Attention,
    ChunkedAttention,
    CompressedAttention,
    FullAttention,
    LatentAttention,
    RecurrentState,
    SlidingAttention,
)
from costsvc.engine.parameters import active_parameter_count, embedding_parameters, parameter_count
from costsvc.engine.specs import DenseFfn, LayerGroup, ModelSpec, MoeFfn


def layers(model: ModelSpec) -> list[LayerGroup]:
    return [model.groups[index] for index in model.pattern]


def mixers(model: ModelSpec) -> list[Attention]:
    return [layer.attention for layer in layers(model) if layer.attention is not None]


def cached_values(model: ModelSpec, context_tokens: float) -> float:
    return float(sum(mixer.kv_values(context_tokens) for mixer in mixers(model)))


def state_values(model: ModelSpec) -> int:
    return sum(
        mixer.state_values + mixer.conv_values for mixer in mixers(model) if isinstance(mixer, RecurrentState)
    )


@pytest.mark.parametrize(
    ("model", "kv_bytes_per_token"),
    [
        ("llama-3-70b", 327_680),
        ("llama-3.1-405b", 516_096),
        ("deepseek-v3", 70_272),
        ("bloom-176b", 4_014_080),
    ],
)
def test_bytes_of_one_token_are_exact(catalog: Catalog, model: str, kv_bytes_per_token: int) -> None:
    spec = catalog.model(model).spec
    assert 2 * (cached_values(spec, 2.0) - cached_values(spec, 1.0)) == kv_bytes_per_token


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("llama-3-70b", 70_553_706_496),
        ("gemma-3-27b", 27_432_406_640),
        ("gpt-oss-120b", 116_829_156_672),
        ("llama-4-maverick", 401_583_781_376),
        ("qwen3-next-80b-a3b", 79_674_391_296),
        ("nemotron-h-8b", 8_100_852_736),
        ("gpt2", 124_439_808),
        ("opt-13b", 12_853_473_280),
        ("falcon-40b", 41_303_293_952),
        ("gemma-4-e4b", 7_463_018_794),
    ],
)
def test_parameters_follow_from_the_shapes_to_the_last_one(
    catalog: Catalog, model: str, parameters: int
) -> None:
    assert parameter_count(catalog.model(model).spec) == parameters


def test_a_tied_head_is_stored_once_and_an_untied_one_twice(catalog: Catalog) -> None:
    tied, untied = catalog.model("qwen2.5-1.5b").spec, catalog.model("deepseek-r1-distill-qwen-1.5b").spec
    assert tied.groups == untied.groups
    assert parameter_count(untied) - parameter_count(tied) == embedding_parameters(tied)
    assert sum(entry.spec.tied_embeddings for entry in catalog.models.values()) >= 75


@pytest.mark.parametrize(
    ("model", "query_heads", "head_dim"),
    [("mistral-nemo-12b", 32, 128), ("qwen3-0.6b", 16, 128), ("gpt-oss-20b", 64, 64), ("gemma-7b", 16, 256)],
)
def test_a_head_is_not_hidden_size_over_heads(
    catalog: Catalog, model: str, query_heads: int, head_dim: int
) -> None:
    spec = catalog.model(model).spec
    mixer = mixers(spec)[-1]
    assert isinstance(mixer, FullAttention)
    assert (mixer.query_heads, mixer.head_dim) == (query_heads, head_dim)
    assert query_heads * head_dim != spec.hidden_size


def test_layers_that_share_kv_store_none(catalog: Catalog) -> None:
    hunyuan = [
        m.shares_kv for m in mixers(catalog.model("hunyuan-large").spec) if isinstance(m, FullAttention)
    ]
    assert hunyuan == [False, True] * 32
    for model, own in (("gemma-4-e2b", 15), ("gemma-4-e4b", 24)):
        sharing = [m.shares_kv for m in mixers(catalog.model(model).spec) if isinstance(m, FullAttention)]
        assert sharing == [False] * own + [True] * (len(sharing) - own)


def test_llama_4_holds_one_chunk_in_three_layers_of_four(catalog: Catalog) -> None:
    spec = catalog.model("llama-4-scout").spec
    assert [type(mixer) for mixer in mixers(spec)] == ([ChunkedAttention] * 3 + [FullAttention]) * 12
    growth = cached_values(spec, 100_001.0) - cached_values(spec, 100_000.0)
    assert growth == 12 * 2 * 8 * 128


def test_a_latent_cache_is_whole_on_every_rank(catalog: Catalog) -> None:
    plain, indexed = catalog.model("deepseek-v3").spec, catalog.model("deepseek-v3.2").spec
    assert cached_values(plain, 1.0) == 35_136
    assert cached_values(indexed, 1.0) == 61 * (576 + 128)
    assert all(isinstance(mixer, LatentAttention) and mixer.kv_share(8) == 1.0 for mixer in mixers(plain))


def test_glm_5_2_indexes_in_a_quarter_of_its_layers(catalog: Catalog) -> None:
    own = [m.indexer for m in mixers(catalog.model("glm-5.2").spec) if isinstance(m, LatentAttention)]
    indexing = [n for n, indexer in enumerate(own) if indexer is not None and indexer.heads]
    assert indexing == [0, 1, 2, *range(6, 78, 4)]
    assert all(indexer is not None and indexer.selected_tokens == 2048 for indexer in own)


@pytest.mark.parametrize(
    ("model", "kv_heads"), [("falcon-7b", 1), ("glm-4-9b-0414", 2), ("qwen3.5-35b-a3b", 2), ("minimax-m3", 4)]
)
def test_few_kv_heads_stop_shrinking_with_tp(catalog: Catalog, model: str, kv_heads: int) -> None:
    full = next(m for m in mixers(catalog.model(model).spec) if isinstance(m, FullAttention))
    assert full.kv_heads == kv_heads
    assert full.kv_share(8) == full.kv_share(kv_heads) == 1 / kv_heads


def test_sliding_layers_hold_a_window_per_sequence(catalog: Catalog) -> None:
    gemma = catalog.model("gemma-3-27b").spec
    kinds = [type(mixer) for mixer in mixers(gemma)]
    assert kinds == ([SlidingAttention] * 5 + [FullAttention]) * 10 + [SlidingAttention] * 2
    assert cached_values(gemma, 8192.0) == 4096 * (52 * 1024 + 10 * 8192)
    gpt_oss = mixers(catalog.model("gpt-oss-20b").spec)
    assert [type(mixer) for mixer in gpt_oss] == [SlidingAttention, FullAttention] * 12
    assert all(mixer.window_tokens == 128 for mixer in gpt_oss if isinstance(mixer, SlidingAttention))


def test_sliding_and_full_layers_differ_in_heads_and_widths(catalog: Catalog) -> None:
    mimo = mixers(catalog.model("mimo-v2-flash").spec)
    sliding = next(m for m in mimo if isinstance(m, SlidingAttention))
    full = next(m for m in mimo if type(m) is FullAttention)
    assert (sliding.kv_heads, full.kv_heads) == (8, 4)
    assert (full.head_dim, full.values_dim) == (192, 128)
    gemma = mixers(catalog.model("gemma-4-31b").spec)
    local = next(m for m in gemma if isinstance(m, SlidingAttention))
    whole = next(m for m in gemma if type(m) is FullAttention)
    assert (local.head_dim, whole.head_dim, whole.values_are_keys) == (256, 512, True)
    assert local.kv_heads != whole.kv_heads


@pytest.mark.parametrize(
    ("model", "values"),
    [
        ("nemotron-nano-9b-v2", 27 * 1_347_584),
        ("qwen3-next-80b-a3b", 36 * 548_864),
        ("kimi-k3", 69 * 1_683_456),
        ("minimax-m1-80k", 70 * 1_048_576),
    ],
)
def test_a_hybrid_keeps_a_state_that_does_not_grow(catalog: Catalog, model: str, values: int) -> None:
    spec = catalog.model(model).spec
    assert state_values(spec) == values
    growing = [m for m in mixers(spec) if not isinstance(m, RecurrentState)]
    assert 0 < len(growing) < spec.layers / 3


def test_a_layer_of_nemotron_is_one_mixer_or_one_block(catalog: Catalog) -> None:
    spec = catalog.model("nemotron-h-8b").spec
    assert all((layer.attention is None) != (layer.ffn is None) for layer in layers(spec))
    blocks = [layer.ffn for layer in layers(spec) if layer.ffn]
    assert len(blocks) == 24
    assert all(isinstance(block, DenseFfn) and not block.gated for block in blocks)


def test_experts_may_work_in_a_latent(catalog: Catalog) -> None:
    for model, latent in (("nemotron-3-super-120b-a12b", 1024), ("kimi-k3", 3584)):
        experts = next(
            layer.ffn for layer in layers(catalog.model(model).spec) if isinstance(layer.ffn, MoeFfn)
        )
        assert experts.latent_size == latent


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("llama-4-scout", 871_932_416), ("gemma-3-27b", 423_060_336), ("qwen3.5-397b-a17b", 456_010_480)],
)
def test_a_vision_tower_is_in_memory_but_not_in_what_a_token_meets(
    catalog: Catalog, model: str, parameters: int
) -> None:
    spec = catalog.model(model).spec
    assert spec.resident_parameters == parameters
    assert active_parameter_count(spec) <= parameter_count(spec) - parameters


def test_per_layer_embeddings_are_half_of_gemma_4_e2b(catalog: Catalog) -> None:
    spec = catalog.model("gemma-4-e2b").spec
    assert spec.extra_parameters > 262_144 * 35 * 256
    assert spec.extra_parameters > parameter_count(spec) / 2


@pytest.mark.parametrize(
    ("model", "attention", "experts", "embedding"),
    [
        ("gpt-oss-120b", "bf16", "mxfp4", "bf16"),
        ("kimi-k2-thinking", "bf16", "int4_g32", "bf16"),
        ("deepseek-r1", "fp8_block", "fp8_block", "bf16"),
        ("deepseek-v4-pro", "fp8_block", "mxfp4", "bf16"),
        ("llama-3-70b", "bf16", "bf16", "bf16"),
    ],
)
def test_a_release_does_not_store_all_tensors_alike(
    catalog: Catalog, model: str, attention: str, experts: str, embedding: str
) -> None:
    plan = catalog.weight_plan(catalog.model(model).released_weights)
    assert (plan.attention, plan.experts, plan.embedding) == (attention, experts, embedding)


def test_mtp_layers_are_in_the_file_and_not_in_a_deployment(catalog: Catalog) -> None:
    spec = catalog.model("deepseek-v3").spec
    assert spec.mtp_parameters == 13_463_426_304
    assert parameter_count(spec) == 671_026_419_200
    assert catalog.model("minimax-m2").spec.mtp_parameters == 0


def test_a_token_meets_few_of_many_experts(catalog: Catalog) -> None:
    spec = catalog.model("gpt-oss-20b").spec
    active = active_parameter_count(spec)
    assert round(active / 1e9, 2) == 4.19
    assert round((active - embedding_parameters(spec)) / 1e9, 1) == 3.6


def test_dense_and_expert_layers_mix_as_released(catalog: Catalog) -> None:
    def kinds(model: str) -> list[bool]:
        return [isinstance(layer.ffn, MoeFfn) for layer in layers(catalog.model(model).spec)]

    assert kinds("deepseek-v3") == [False] * 3 + [True] * 58
    assert kinds("llama-4-maverick") == [False, True] * 24
    assert kinds("jamba-v0.1") == [False, True] * 16
    assert all(kinds("mixtral-8x7b"))


def test_deepseek_v4_compresses_its_cache(catalog: Catalog) -> None:
    spec = catalog.model("deepseek-v4-flash").spec
    ratios = [m.compress_ratio for m in mixers(spec) if isinstance(m, CompressedAttention)]
    assert len(ratios) == spec.layers
    assert Counter(ratios) == {0: 2, 4: 21, 128: 20}
    growth = cached_values(spec, 2_000_000.0) - cached_values(spec, 1_000_000.0)
    assert growth / 1e6 == pytest.approx(21 * (512 + 128) / 4 + 20 * 512 / 128)


def test_names_that_look_alike_have_other_shapes(catalog: Catalog) -> None:
    def kv_heads(model: str) -> int:
        mixer = mixers(catalog.model(model).spec)[0]
        assert isinstance(mixer, FullAttention)
        return mixer.kv_heads

    assert (kv_heads("command-r"), kv_heads("command-r-08-2024")) == (64, 8)
    assert (
        catalog.model("mistral-7b-v0.1").spec.vocab_size != catalog.model("mistral-7b-v0.3").spec.vocab_size
    )
