"""How a release is stored, by each way of saying so; what has no weight plan must be given."""

from typing import Any

import pytest

from costsvc.ingest.hugging_face.fields import Fields
from costsvc.ingest.hugging_face.quantization import weight_plan

ATTENTION_SPARED = ["lm_head", "re:.*self_attn.*"]


def compressed(bits: int, kind: str, **more: Any) -> dict[str, Any]:
    weights = {"num_bits": bits, "type": kind, **more.pop("weights", {})}
    groups = {"group_0": {"weights": weights, "targets": ["Linear"]}}
    return {"quant_method": "compressed-tensors", "config_groups": groups, **more}


SAID: list[tuple[dict[str, Any], str | None]] = [
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_block"),
    ({"quant_method": "fp8"}, "fp8"),
    ({"quant_method": "fbgemm_fp8"}, "fp8"),
    ({"quant_method": "awq", "bits": 4}, "int4"),
    ({"quant_method": "gptq", "bits": 8}, "int8"),
    ({"quant_method": "gptq", "bits": 3}, None),
    ({"quant_method": "mxfp4"}, "mxfp4-experts"),
    (compressed(8, "float"), "fp8"),
    (compressed(8, "float", weights={"strategy": "block"}), "fp8_block"),
    (compressed(8, "int"), "int8"),
    (compressed(4, "int"), "int4"),
    (compressed(4, "int", ignore=ATTENTION_SPARED), "int4-experts"),
    (compressed(4, "float"), "nvfp4"),
    (compressed(4, "float", format="mxfp4-pack-quantized", ignore=ATTENTION_SPARED), "mxfp4-experts"),
    (
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["model.layers.0.self_attn*"]},
        "nvfp4-experts",
    ),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
    ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, None),
    ({"quant_method": "modelopt", "quant_algo": "FP8", "quantized_layers": {"a": {}}}, None),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, None),
    ({"quant_method": "something-new"}, None),
    ({}, None),
]


def plan(config: dict[str, Any], repository: str | None = None, *, has_experts: bool = True) -> str | None:
    fields = Fields(config)
    return weight_plan(fields, fields, repository=repository, has_experts=has_experts)


@pytest.mark.parametrize(("said", "expected"), SAID, ids=str)
def test_a_quantisation_is_a_weight_plan_or_none(said: dict[str, Any], expected: str | None) -> None:
    assert plan({"quantization_config": said, "torch_dtype": "bfloat16"}) == expected


@pytest.mark.parametrize("name", ["dtype", "torch_dtype"])
@pytest.mark.parametrize(
    ("word", "expected"),
    [("bfloat16", "bf16"), ("torch.float16", "fp16"), ("float32", "fp32"), ("fp7", None)],
)
def test_without_one_the_type_of_values_says_it(name: str, word: str, expected: str | None) -> None:
    assert plan({name: word}) == expected


@pytest.mark.parametrize(
    "repository", ["org/Model-NVFP4", "org/Model-FP8-dynamic", "org/model-awq", "org/M.w4a16"]
)
def test_a_name_that_tells_of_a_quantisation_beside_the_configuration_leaves_it_open(repository: str) -> None:
    assert plan({"torch_dtype": "bfloat16"}, repository) is None
    assert plan({"torch_dtype": "bfloat16"}, "org/Model-fp8ish") == "bf16"


@pytest.mark.parametrize(
    ("experts", "expected"), [("fp4", "fp4-experts+fp8"), ("fp8", "fp8_block"), ("fp6", None)]
)
def test_experts_may_be_stored_otherwise(experts: str, expected: str | None) -> None:
    said = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    assert plan({"quantization_config": said, "expert_dtype": experts}) == expected


@pytest.mark.parametrize(
    ("bits", "kind", "expected"), [(4, "int", None), (8, "float", None), (4, "float", "nvfp4-experts")]
)
def test_a_plan_of_experts_alone_is_none_of_a_dense_model(bits: int, kind: str, expected: str | None) -> None:
    said = {"quantization_config": compressed(bits, kind, ignore=ATTENTION_SPARED)}
    assert plan(said, has_experts=False) == expected


def test_a_nested_section_may_say_it() -> None:
    text = Fields({"quantization_config": {"quant_method": "fp8"}}, "text_config.")
    assert weight_plan(Fields({"torch_dtype": "bfloat16"}), text, repository=None, has_experts=False) == "fp8"
