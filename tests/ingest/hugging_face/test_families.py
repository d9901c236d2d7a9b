"""The traps of the families: widths, windows, sharing, towers and predictions that a field alone would get wrong."""

from typing import Any

import pytest

from costsvc.engine.attention import (
    ChunkedAttention,
    CompressedAttention,
    FullAttention,
    LatentAttention,
    RecurrentState,
    SlidingAttention,
)
from costsvc.engine.parameters import parameter_count
from costsvc.engine.specs import MoeFfn
from costsvc.errors import ConfigNotUnderstood
from costsvc.ingest.hugging_face.families import FAMILIES
from tests.ingest.hugging_face.published import imported, imported_config, published, published_models

GEMMA3: dict[str, Any] = {
    "model_type": "gemma3",
    "architectures": ["Gemma3ForConditionalGeneration"],
    "dtype": "bfloat16",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    },
    "vision_config": {
        "model_type": "siglip_vision_model",
        "hidden_size": 1152,
        "image_size": 896,
        "intermediate_size": 4304,
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "patch_size": 14,
        "vision_use_head": False,
    },
}


def attentions(model: str) -> dict[str, Any]:
    return imported(published(model)).file.attention


def test_most_families_are_counted_against_a_published_model() -> None:
    types = {one.model_type for one in published_models()}
    assert types - {"nemotron-nas"} <= set(FAMILIES)
    assert len(types) >= 50


def test_a_stated_head_is_not_the_hidden_size_over_the_heads() -> None:
    assert attentions("openai/gpt-oss-20b")["full"].head_dim == 64
    assert attentions("google/gemma-7b")["full"].head_dim == 256


def test_mla_inside_a_multimodal_configuration_is_one_latent() -> None:
    mla = attentions("moonshotai/Kimi-K2.5")["mla"]
    assert isinstance(mla, LatentAttention)
    assert mla.kv_values(1.0) == 576


def test_the_head_width_that_an_mla_configuration_states_is_no_width_of_its_cache() -> None:
    one = published("zai-org/GLM-5")
    assert "head_dim" in one.config
    without = {name: value for name, value in one.config.items() if name != "head_dim"}
    assert imported_config(without).file.attention == imported(one).file.attention


def test_an_indexer_that_is_shared_has_no_tensors_of_its_own() -> None:
    heads = sorted(mixer.indexer.heads for mixer in attentions("zai-org/GLM-5.2").values())
    assert heads == [0, 32]


def test_an_expert_mixture_may_leave_mla_out() -> None:
    mha = {**published("deepseek-ai/DeepSeek-R1").config, "model_type": "deepseek_v2", "use_mla": False}
    heads = {
        "kv_lora_rank": None,
        "q_lora_rank": None,
        "qk_rope_head_dim": 0,
        "qk_nope_head_dim": 0,
        "v_head_dim": 0,
    }
    one = imported_config({**mha, **heads, "num_nextn_predict_layers": 0}).file
    assert isinstance(one.attention["full"], FullAttention)


def test_three_of_four_layers_are_chunked_and_the_fourth_is_whole() -> None:
    file = imported(published("meta-llama/Llama-4-Scout-17B-16E-Instruct")).file
    assert file.layers == "12*(3*chunked+moe, full+moe)"
    assert isinstance(file.attention["chunked"], ChunkedAttention)


def test_every_second_layer_has_experts() -> None:
    file = imported(published("meta-llama/Llama-4-Maverick-17B-128E-Instruct")).file
    assert file.layers == "12*(chunked+mlp, chunked+moe, chunked+mlp, full+moe)"


def test_sliding_layers_may_have_other_heads_and_widths() -> None:
    kinds = attentions("XiaomiMiMo/MiMo-V2-Flash")
    assert (kinds["sliding"].kv_heads, kinds["full"].kv_heads) == (8, 4)
    assert (kinds["sliding"].head_dim, kinds["sliding"].value_dim) == (192, 128)
    assert (kinds["sliding"].sinks, kinds["full"].sinks) == (True, False)


def test_global_layers_may_have_one_projection_for_keys_and_values() -> None:
    full = attentions("google/gemma-4-26B-A4B")["full"]
    assert (full.head_dim, full.kv_heads, full.values_are_keys) == (512, 2, True)


def test_a_window_that_the_context_never_leaves_is_none() -> None:
    config = {**published("mistralai/Mistral-7B-v0.1").config, "dtype": "bfloat16"}
    assert isinstance(imported_config(config).file.attention["sliding"], SlidingAttention)
    wide = {**config, "sliding_window": config["max_position_embeddings"]}
    assert imported_config(wide).file.layers == "32*full+mlp"


@pytest.mark.parametrize(("flag", "layers"), [(True, "24*full+mlp, 4*sliding+mlp"), (False, "28*full+mlp")])
def test_qwen_uses_its_window_only_if_told_to(flag: bool, layers: str) -> None:
    qwen = {
        "model_type": "qwen2",
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "num_hidden_layers": 28,
        "vocab_size": 152064,
        "max_position_embeddings": 131072,
        "sliding_window": 4096,
        "max_window_layers": 24,
        "use_sliding_window": flag,
        "dtype": "bfloat16",
    }
    assert imported_config(qwen).file.layers == layers


def test_the_last_layers_reuse_the_cache_and_have_wider_blocks() -> None:
    gemma = {
        "model_type": "gemma4_text",
        "hidden_size": 1536,
        "intermediate_size": 6144,
        "num_hidden_layers": 35,
        "num_attention_heads": 8,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "global_head_dim": 512,
        "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
        "sliding_window": 512,
        "num_kv_shared_layers": 20,
        "use_double_wide_mlp": True,
        "hidden_size_per_layer_input": 256,
        "vocab_size_per_layer_input": 262144,
        "vocab_size": 262144,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": True,
        "dtype": "bfloat16",
    }
    file = imported_config(gemma).file
    assert file.layers == ("3*(4*sliding+mlp, full+mlp), 4*(4*sliding_reusing+mlp_2, full_reusing+mlp_2)")
    assert file.ffn["mlp_2"].intermediate_size == 2 * file.ffn["mlp"].intermediate_size
    assert file.attention["full_reusing"].kv_values(1.0) == 0
    assert file.norm_vectors == 5


def test_half_the_layers_share_a_cache_where_a_factor_says_so() -> None:
    hunyuan = {
        "model_type": "hunyuan_v1_moe",
        "hidden_size": 6400,
        "intermediate_size": 18304,
        "num_hidden_layers": 4,
        "num_attention_heads": 80,
        "num_key_value_heads": 8,
        "num_experts": 16,
        "moe_topk": [1, 1, 1, 1],
        "num_shared_expert": [1, 1, 1, 1],
        "use_cla": True,
        "cla_share_factor": 2,
        "head_dim": 128,
        "vocab_size": 128512,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": True,
        "dtype": "bfloat16",
    }
    assert imported_config(hunyuan).file.layers == "2*(full+moe, full_reusing+moe)"


def test_a_hybrid_counts_blocks_as_layers_and_has_experts_in_a_latent() -> None:
    file = imported(published("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8")).file
    assert len(file.spec().pattern) == 88
    assert file.norm_vectors == 1
    assert isinstance(file.ffn["moe"], MoeFfn)
    assert (file.ffn["moe"].latent_size, file.ffn["moe"].gated) == (1024, False)
    assert isinstance(file.attention["mamba2"], RecurrentState)


@pytest.mark.parametrize(("word", "value_bytes"), [("float32", 4.0), ("bfloat16", 2.0)])
def test_the_state_is_as_wide_as_the_configuration_says(word: str, value_bytes: float) -> None:
    config = {**published("nvidia/Nemotron-H-56B-Base-8K").config, "mamba_ssm_cache_dtype": word}
    state = imported_config(config).file.attention["mamba2"]
    assert isinstance(state, RecurrentState)
    assert state.state_value_bytes == value_bytes


def test_compression_is_by_layer() -> None:
    ratios = {
        mixer.compress_ratio: mixer.indexer is not None
        for mixer in attentions("deepseek-ai/DeepSeek-V4-Flash").values()
        if isinstance(mixer, CompressedAttention)
    }
    assert ratios == {0: False, 4: True, 128: False}


def test_a_nested_section_leaves_out_what_equals_its_class() -> None:
    model = imported_config(GEMMA3)
    assert parameter_count(model.file.spec()) == 4_300_079_472
    assert model.file.resident_parameters == 419_816_304
    defaulted = {one.what for one in model.inferred if "default of the model class" in one.read_from}
    assert {"num_attention_heads", "head_dim", "layers"} <= defaulted


def test_a_window_that_a_class_needs_is_not_guessed() -> None:
    text = {name: value for name, value in GEMMA3["text_config"].items() if name != "sliding_window"}
    with pytest.raises(ConfigNotUnderstood, match="sliding_window_pattern"):
        imported_config({**GEMMA3, "text_config": text})


def test_a_tied_head_is_stored_once_and_untied_where_the_release_unties_it() -> None:
    tied = {
        "model_type": "qwen2",
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "num_hidden_layers": 28,
        "vocab_size": 151936,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": True,
        "dtype": "bfloat16",
    }
    untied = {**tied, "tie_word_embeddings": False}
    counts = [parameter_count(imported_config(config).file.spec()) for config in (tied, untied)]
    assert counts == [1_543_714_304, 1_543_714_304 + 151936 * 1536]
