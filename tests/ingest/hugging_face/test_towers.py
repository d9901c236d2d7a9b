"""Towers that several classes share, counted against the totals of released files."""

from typing import Any

import pytest

from costsvc.errors import ConfigNotUnderstood
from tests.ingest.hugging_face.published import imported_config

# llava-hf/llava-1.5-7b-hf, less what says how it is trained or shown.
LLAVA: dict[str, Any] = {
    "model_type": "llava",
    "architectures": ["LlavaForConditionalGeneration"],
    "image_token_index": 32000,
    "projector_hidden_act": "gelu",
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "vision_feature_layer": -2,
    "vision_feature_select_strategy": "default",
    "text_config": {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "max_position_embeddings": 4096,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 32,
        "vocab_size": 32064,
    },
    "vision_config": {
        "model_type": "clip_vision_model",
        "hidden_size": 1024,
        "image_size": 336,
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
        "patch_size": 14,
        "projection_dim": 768,
    },
}
# mistralai/Mistral-Small-3.1-24B-Instruct-2503.
MISTRAL3: dict[str, Any] = {
    "model_type": "mistral3",
    "architectures": ["Mistral3ForConditionalGeneration"],
    "image_token_index": 10,
    "multimodal_projector_bias": False,
    "projector_hidden_act": "gelu",
    "spatial_merge_size": 2,
    "torch_dtype": "bfloat16",
    "vision_feature_layer": -1,
    "text_config": {
        "model_type": "mistral",
        "head_dim": 128,
        "hidden_size": 5120,
        "intermediate_size": 32768,
        "max_position_embeddings": 131072,
        "num_attention_heads": 32,
        "num_hidden_layers": 40,
        "num_key_value_heads": 8,
        "sliding_window": None,
        "vocab_size": 131072,
    },
    "vision_config": {
        "model_type": "pixtral",
        "head_dim": 64,
        "hidden_size": 1024,
        "image_size": 1540,
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "num_channels": 3,
        "num_hidden_layers": 24,
        "patch_size": 14,
    },
}


@pytest.mark.parametrize(
    ("config", "in_file", "beside_the_text"),
    [(LLAVA, 7_063_427_072, 324_487_168), (MISTRAL3, 24_011_361_280, 438_958_080)],
    ids=["clip", "pixtral"],
)
def test_a_shared_tower_and_what_joins_it_are_counted_to_the_last_parameter(
    config: dict[str, Any], in_file: int, beside_the_text: int
) -> None:
    model = imported_config(config)
    assert model.file.file_parameters() == in_file
    assert model.file.resident_parameters == beside_the_text


def test_pixtral_is_joined_to_llava_without_merging() -> None:
    joined = {**MISTRAL3, "model_type": "llava", "multimodal_projector_bias": True}
    less = (2 * 2) * 1024 * 1024 + 1024 - 2 * 5120
    assert imported_config(joined).file.resident_parameters == 438_958_080 - less


def test_features_of_several_layers_are_refused() -> None:
    with pytest.raises(ConfigNotUnderstood, match="several layers"):
        imported_config({**LLAVA, "vision_feature_layer": [-2, -5]})


def test_a_tower_joined_in_another_way_must_be_given() -> None:
    with pytest.raises(ConfigNotUnderstood, match="resident_parameters"):
        imported_config({**LLAVA, "model_type": "llava_next"})
