"""What a configuration leaves open, contradicts or says beyond what is known is refused, in words that lead on."""

from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costsvc.errors import ConfigNotUnderstood
from costsvc.ingest.hugging_face.files import file_text
from costsvc.ingest.hugging_face.given import GivenFacts, ImportedConfig
from costsvc.ingest.hugging_face.importing import import_config
from tests.ingest.hugging_face.published import DAY, ORIGIN, imported_config, published, published_models

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 512,
    "torch_dtype": "bfloat16",
}


def refusal(config: dict[str, Any], **given: Any) -> ConfigNotUnderstood:
    with pytest.raises(ConfigNotUnderstood) as caught:
        imported_config(config, **given)
    return caught.value


@pytest.mark.parametrize(
    "name", ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"]
)
def test_a_decisive_field_that_is_missing_is_named(name: str) -> None:
    error = refusal({key: value for key, value in LLAMA.items() if key != name})
    assert error.field == name
    assert f"does not state {name}" in error.message


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("deepseek-ai/DeepSeek-R1", "first_k_dense_replace"),
        ("deepseek-ai/DeepSeek-R1", "n_shared_experts"),
        ("deepseek-ai/DeepSeek-R1", "n_routed_experts"),
        ("deepseek-ai/DeepSeek-R1", "q_lora_rank"),
        ("deepseek-ai/DeepSeek-V3.2", "index_topk"),
        ("deepseek-ai/DeepSeek-V4-Flash", "compress_ratios"),
        ("Qwen/Qwen3-235B-A22B", "num_experts"),
        ("Qwen/Qwen3-Coder-Next", "shared_expert_intermediate_size"),
        ("mistralai/Mistral-7B-v0.1", "sliding_window"),
        ("mistralai/Mistral-7B-v0.1", "num_key_value_heads"),
        ("MiniMaxAI/MiniMax-M3", "sparse_attention_config"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "attention_chunk_size"),
        ("google/gemma-4-26B-A4B", "global_head_dim"),
        ("google/gemma-4-26B-A4B", "hidden_size_per_layer_input"),
        ("XiaomiMiMo/MiMo-V2-Flash", "swa_num_key_value_heads"),
        ("nvidia/Nemotron-H-56B-Base-8K", "hybrid_override_pattern"),
        ("moonshotai/Kimi-K3", "linear_attn_config"),
    ],
)
def test_what_a_family_does_not_fix_is_not_taken_to_be_nothing(model: str, name: str) -> None:
    one = published(model)
    nested = "text_config" if name in one.config.get("text_config", {}) else None
    text = {
        key: value for key, value in (one.config[nested] if nested else one.config).items() if key != name
    }
    assert len(text) < len(one.config[nested] if nested else one.config)
    config = {**one.config, nested: text} if nested else text
    error = refusal(config, released_weights="bf16", resident_parameters=0)
    assert str(error.field).endswith(("layer_types", "num_experts", name)), error.message


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("hidden_size", "64", "'64'; it must be a whole number"),
        ("hidden_size", 64.5, "it must be a whole number"),
        ("hidden_size", True, "it must be a whole number"),
        ("hidden_size", -64, "from 1 to"),
        ("hidden_size", 10**12, "from 1 to"),
        ("num_hidden_layers", 100_000, "from 1 to 1,000"),
        ("num_key_value_heads", 3, "does not divide the 4 query heads"),
        ("attention_bias", "yes", "it must be true or false"),
        ("architectures", "LlamaForCausalLM", "no list of class names"),
        ("hidden_size", [64] * 1000, "…; it must be a whole number"),
    ],
)
def test_a_value_that_cannot_be_is_refused(name: str, value: object, said: str) -> None:
    assert said in refusal({**LLAMA, name: value}).message


def test_two_spellings_that_differ_contradict_each_other() -> None:
    error = refusal({**LLAMA, "n_embd": 32})
    assert "contradicts itself: hidden_size is 64, n_embd is 32" in error.message


def test_a_head_that_is_tied_here_and_not_there_contradicts_itself() -> None:
    one = published("Qwen/Qwen3-VL-2B-Instruct").config
    text = {**one["text_config"], "tie_word_embeddings": False}
    said = refusal({**one, "text_config": text, "tie_word_embeddings": True}).message
    assert "tie_word_embeddings is True and text_config.tie_word_embeddings is False" in said


def test_a_class_of_several_media_without_a_tower_is_told() -> None:
    model = imported_config({**LLAMA, "architectures": ["LlavaForConditionalGeneration"]})
    assert any(point.startswith("resident_parameters: ") for point in model.open_points)


def test_a_head_is_not_the_hidden_size_shared_out_where_that_leaves_a_rest() -> None:
    error = refusal({**LLAMA, "hidden_size": 66})
    assert "head_dim is not stated, and hidden_size 66 is no multiple of 4 heads" in error.message


@pytest.mark.parametrize("name", ["num_experts", "moe_intermediate_size", "kv_lora_rank", "mlp_layer_ratio"])
def test_a_field_that_sounds_like_a_shape_and_that_no_formula_reads_is_refused(name: str) -> None:
    error = refusal({**LLAMA, name: 8})
    assert error.details["fields"] == [name]
    assert "may change the shapes" in error.message


@pytest.mark.parametrize("value", [None, False, 0, [], {}, ""])
def test_a_field_that_says_no_changes_nothing(value: object) -> None:
    assert imported_config({**LLAMA, "num_experts": value}).file == imported_config(LLAMA).file


def test_a_field_that_sounds_like_nothing_is_reported() -> None:
    assert imported_config({**LLAMA, "mood": "good"}).unused == ("mood",)


def test_an_unknown_type_is_refused_with_the_nearest() -> None:
    error = refusal({**LLAMA, "model_type": "llamma"})
    assert "no formula for models of type 'llamma'. Nearest known: llama" in error.message
    assert "llama" in error.details["nearest"]  # type: ignore[operator]


def test_an_unknown_type_is_imported_as_the_type_it_is_built_like() -> None:
    posted = ImportedConfig(
        config={**LLAMA, "model_type": "my_llama"}, id="x", name="X", source=ORIGIN, built_like="llama"
    )
    made = import_config(posted, DAY).file
    assert made.attention == imported_config(LLAMA).file.attention
    assert made.family == "my-llama"


def test_a_type_that_is_not_stated_is_that_of_the_class() -> None:
    unnamed = {name: value for name, value in LLAMA.items() if name != "model_type"}
    assert "does not state model_type" in refusal(unnamed).message
    assert imported_config({**unnamed, "architectures": ["LlamaForCausalLM"]}).file.layers == "2*full+mlp"


@pytest.mark.parametrize("architecture", ["LlamaForSequenceClassification", "LlamaModel", "BertModel"])
def test_a_model_without_a_head_generates_nothing(architecture: str) -> None:
    assert "no language-model head" in refusal({**LLAMA, "architectures": [architecture]}).message


@pytest.mark.parametrize("name", ["is_encoder_decoder", "add_cross_attention"])
def test_what_the_catalog_cannot_say_is_refused(name: str) -> None:
    assert "has no formula here" in refusal({**LLAMA, name: True}).message


@pytest.mark.parametrize(
    "words", [["full_attention"], ["full_attention", "ring_attention"], "full_attention"]
)
def test_kinds_of_layers_must_be_known_and_one_per_layer(words: object) -> None:
    smollm = {**LLAMA, "model_type": "smollm3", "layer_types": words}
    assert refusal(smollm).field == "layer_types"


def test_a_hybrid_whose_order_is_not_stated_is_not_guessed() -> None:
    granite = {**LLAMA, "model_type": "granitemoehybrid"}
    assert "does not state layer_types" in refusal(granite).message


def test_all_that_must_be_given_is_named_at_once() -> None:
    silent = {
        name: value for name, value in LLAMA.items() if name not in ("torch_dtype", "max_position_embeddings")
    }
    with pytest.raises(ConfigNotUnderstood) as caught:
        import_config(ImportedConfig(config={**silent, "vision_config": {"depth": 2}}), DAY)
    assert caught.value.details["must_be_given"] == [
        "hf_id",
        "source",
        "given.released_weights",
        "given.max_context_tokens",
        "given.resident_parameters",
    ]


def test_what_is_given_has_the_source_it_is_given_with() -> None:
    facts = GivenFacts(
        source=ORIGIN.model_copy(update={"title": "Its card"}),
        released_weights="fp8",
        licence="MIT",
        released=DAY,
    )
    posted = ImportedConfig(config=LLAMA, hf_id="example-org/Example-1B", given=facts)
    file = import_config(posted, DAY).file
    assert (file.id, file.name, file.released_weights) == ("example-1b", "Example-1B", "fp8")
    assert file.sources[0].url == "https://huggingface.co/example-org/Example-1B"
    assert set(file.sources[-1].covers) == {"released_weights", "licence", "released"}
    assert file.sources[-1].title == "Its card"


def test_a_published_count_that_is_far_off_needs_a_reason() -> None:
    assert "State parameter_difference_reason" in refusal(LLAMA, published_parameters=200_000).message
    made = imported_config(LLAMA, published_parameters=200_000, parameter_difference_reason="a tower").file
    assert made.parameter_difference_reason == "a tower"


def test_a_published_count_with_a_second_copy_of_the_head_is_recognised() -> None:
    one = published("Qwen/Qwen3-0.6B")
    assert imported_config(one.config, published_parameters=751_632_384).file.published_counts_also == [
        "tied-head-copy"
    ]


def test_shapes_beyond_any_model_are_refused() -> None:
    large = {**LLAMA, "num_hidden_layers": 1000, "hidden_size": 10_000_000, "intermediate_size": 10**9}
    assert "more than any model has" in refusal(large).message


WEIRD = [
    None,
    -1,
    0,
    1,
    3,
    10**30,
    1.5,
    float("inf"),
    True,
    False,
    "x",
    "",
    [],
    {},
    ["a"],
    [1, 2],
    [[1]],
    [None],
    {"a": 1},
]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_whatever_a_configuration_says_it_is_an_entry_or_refused(data: st.DataObject) -> None:
    one = data.draw(st.sampled_from(published_models()))
    config = deepcopy(one.config)
    sections = [config, *(part for part in config.values() if isinstance(part, dict) and part)]
    section = data.draw(st.sampled_from(sections))
    section[data.draw(st.sampled_from(sorted(section)))] = data.draw(st.sampled_from(WEIRD))
    with suppress(ConfigNotUnderstood):
        file_text(imported_config(config, **(one.given or {})).file)
