"""How the weights are stored, as `quantization_config` and `dtype` say: the id of a weight plan of the catalog."""

import re
from collections.abc import Mapping
from typing import Any, Final

from costsvc.ingest.hugging_face.fields import Fields

_SIXTEEN_OR_MORE: Final[Mapping[str, str]] = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_TOLD_BY_NAME: Final = re.compile(
    r"(?:^|[-_.])(?:nvfp4|mxfp4|fp[48]|int[48]|w\d+a\d+|awq|gptq|gguf|bnb|[48]bit)(?:$|[-_.])", re.IGNORECASE
)
# (type, bits) of a weight to the plan that stores every linear layer so.
_BY_BITS: Final[Mapping[tuple[str, int], str]] = {
    ("float", 8): "fp8",
    ("int", 8): "int8",
    ("int", 4): "int4",
    ("float", 4): "nvfp4",
}
_OF_EXPERTS_ALONE: Final[Mapping[str, str]] = {
    "int4": "int4-experts",
    "fp8": "fp8-experts",
    "fp8_block": "fp8-experts",
    "nvfp4": "nvfp4-experts",
    "mxfp4": "mxfp4-experts",
}
# Experts that are stored otherwise than the rest, where a field says so (DeepSeek-V4).
_WITH_EXPERTS_IN: Final[Mapping[tuple[str | None, str], str]] = {
    ("fp8_block", "fp4"): "fp4-experts+fp8",
    ("fp8_block", "fp8"): "fp8_block",
}
_OF_NOTHING_ELSE: Final = frozenset({"int4-experts", "fp8-experts", "mxfp4-experts"})
_BY_ALGORITHM: Final[Mapping[str, str]] = {
    "FP8": "fp8",
    "NVFP4": "nvfp4",
    "W4A16_AWQ": "int4",
    "INT8_SQ": "int8",
}


def weight_plan(whole: Fields, text: Fields, *, repository: str | None, has_experts: bool) -> str | None:
    """The plan that a release is stored in; None where nothing says so, or what is said has no plan.

    Exporters may put the quantisation into another file: where the repository's name tells of one that the
    configuration does not state, nothing is said. A plan of experts alone is none of a model without them.
    """
    section = whole.section("quantization_config") or text.section("quantization_config")
    if section is None:
        return None if repository and _TOLD_BY_NAME.search(repository) else _unquantised(whole, text)
    plan = _plan(section)
    if (experts := text.text("expert_dtype")) is not None:
        plan = _WITH_EXPERTS_IN.get((plan, experts))
    if plan in _OF_NOTHING_ELSE and not has_experts:
        plan = None
    if plan is not None:
        whole.note("released_weights", plan, because=f"{section.placed('')[:-1]}")
    return plan


def _unquantised(whole: Fields, text: Fields) -> str | None:
    for fields in (text, whole):
        word = fields.any("dtype", "torch_dtype")
        if isinstance(word, str) and (plan := _SIXTEEN_OR_MORE.get(word.removeprefix("torch."))):
            fields.note("released_weights", plan, "dtype", "torch_dtype")
            return plan
    return None


def _plan(section: Fields) -> str | None:
    method = section.value("quant_method")
    if section.value("quant_algo") == "MIXED_PRECISION" or section.value("quantized_layers"):
        return None
    if method == "mxfp4":
        return "mxfp4-experts"
    if method in ("fp8", "fbgemm_fp8"):
        return "fp8_block" if section.value("weight_block_size") else "fp8"
    if method in ("awq", "gptq", "auto-round", "gptq_marlin", "awq_marlin"):
        bits = section.value("bits") or section.value("w_bit")
        return _BY_BITS.get(("int", bits)) if isinstance(bits, int) else None
    if method in ("compressed-tensors", "modelopt", None):
        plan = _of_groups(section) or _BY_ALGORITHM.get(str(section.value("quant_algo")))
        return _narrowed(plan, section) if plan else None
    return None


def _of_groups(section: Fields) -> str | None:
    """The one form of weights in `config_groups`; None where there are several."""
    groups = section.value("config_groups")
    if not isinstance(groups, dict):
        return None
    plans = {
        _of_group(group, section.value("format")) for group in groups.values() if isinstance(group, dict)
    }
    return plans.pop() if len(plans) == 1 else None


def _of_group(group: Mapping[str, Any], format_of_all: object) -> str | None:
    weights = group.get("weights")
    if not isinstance(weights, dict):
        return None
    if "mxfp4" in f"{group.get('format')} {format_of_all}":
        return "mxfp4"
    bits, kind = weights.get("num_bits"), weights.get("type")
    plan = _BY_BITS.get((kind, bits)) if isinstance(kind, str) and isinstance(bits, int) else None
    return "fp8_block" if plan == "fp8" and weights.get("strategy") == "block" else plan


def _narrowed(plan: str, section: Fields) -> str:
    """A plan of the experts alone where attention is left in 16 bit."""
    ignored = section.value("ignore") or section.value("exclude_modules") or []
    names = [name for name in ignored if isinstance(name, str)] if isinstance(ignored, list) else []
    spared = any("attn" in name and "vision" not in name for name in names)
    return _OF_EXPERTS_ALONE.get(plan, plan) if spared else plan
