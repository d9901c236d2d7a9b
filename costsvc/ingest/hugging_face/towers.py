"""Towers beside the text: what stands in memory and takes no part in a token's arithmetic."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Final

from costsvc.ingest.hugging_face.fields import Fields

TOWERS: Final = (
    "vision_config",
    "audio_config",
    "visual",
    "projector_config",
    "aligner_config",
    "gen_vision_config",
    "gen_head_config",
    "gen_aligner_config",
)
_CHANNELS: Final = 3


def tower_parameters(name: str, whole: Fields, text_size: int) -> int | None:
    """Parameters of a tower and of what joins it to the text; None where it has no formula here. [parameters]"""
    section = whole.section(name)
    if section is None or name != "vision_config":
        return None
    joined = f"{whole.value('model_type')}/{section.value('model_type')}"
    if joined in _JOINED:
        tower, joint = _JOINED[joined]
        return tower(section) + joint(section, whole, text_size)
    kinds = (joined, section.text("model_type"), whole.text("model_type"))
    formula = next((_FORMULAS[kind] for kind in kinds if kind in _FORMULAS), None)
    return formula(section, text_size) if formula else None


def _layer(size: int, inner_size: int, *, gated: bool, bias: bool, norms: int) -> int:
    """Full attention of one width, a block, and norm vectors. [parameters]"""
    matrices = 3 if gated else 2
    biases = 4 * size + (matrices - 1) * inner_size + size if bias else 0
    return 4 * size * size + matrices * size * inner_size + biases + norms * size


def _merger(size: int, merged_size: int, text_size: int, norm: int) -> int:
    """Neighbouring patches through two layers into the text's width. [parameters]"""
    return norm + (merged_size + 1) * merged_size + (merged_size + 1) * text_size


def _qwen3(vision: Fields, text_size: int) -> int:
    size, depth = vision.count("hidden_size"), vision.count("depth")
    patch = _CHANNELS * vision.count("temporal_patch_size") * vision.count("patch_size") ** 2
    merged = size * vision.count("spatial_merge_size") ** 2
    out_size = vision.count("out_hidden_size")
    deep = vision.any("deepstack_visual_indexes") or []
    if not isinstance(deep, list):
        vision.refuse(("deepstack_visual_indexes",), "no list of layers")
    layers = depth * _layer(size, vision.count("intermediate_size"), gated=False, bias=True, norms=4)
    tables = (patch + 1) * size + vision.count("num_position_embeddings") * size
    mergers = _merger(size, merged, out_size, 2 * size)
    mergers += len(deep) * _merger(size, merged, out_size, 2 * merged)
    return tables + layers + mergers


def _qwen2(vision: Fields, text_size: int) -> int:
    size, depth = vision.count("embed_dim"), vision.count("depth")
    patch = _CHANNELS * vision.count("temporal_patch_size") * vision.count("patch_size") ** 2
    merged = size * vision.count("spatial_merge_size") ** 2
    layers = depth * _layer(size, size * vision.count("mlp_ratio"), gated=False, bias=True, norms=4)
    return patch * size + layers + _merger(size, merged, vision.count("hidden_size"), 2 * size)


def _qwen2_5(vision: Fields, text_size: int) -> int:
    size, depth = vision.count("hidden_size"), vision.count("depth")
    patch = _CHANNELS * vision.count("temporal_patch_size") * vision.count("patch_size") ** 2
    merged = size * vision.count("spatial_merge_size") ** 2
    layers = depth * _layer(size, vision.count("intermediate_size"), gated=True, bias=True, norms=2)
    return patch * size + layers + _merger(size, merged, vision.count("out_hidden_size"), size)


def _siglip(vision: Fields, text_size: int) -> int:
    """With the one projection and norm by which Gemma 3 joins it."""
    size, patch = vision.count("hidden_size"), vision.count("patch_size")
    positions = (vision.count("image_size") // patch) ** 2
    depth = vision.count("num_hidden_layers")
    layers = depth * _layer(size, vision.count("intermediate_size"), gated=False, bias=True, norms=4)
    tables = (_CHANNELS * patch**2 + 1) * size + positions * size
    return tables + layers + 2 * size + size * text_size + size


def _llama4(vision: Fields, text_size: int) -> int:
    size, patch = vision.count("hidden_size"), vision.count("patch_size")
    inner = vision.count("intermediate_size")
    positions = (vision.count("image_size") // patch) ** 2 + 1
    depth = vision.count("num_hidden_layers")
    layers = depth * _layer(size, inner, gated=False, bias=True, norms=4)
    tables = _CHANNELS * patch**2 * size + size + positions * size + 4 * size
    joined = vision.count("projector_output_dim")
    adapter = inner * vision.count("projector_input_dim") + vision.count("projector_input_dim") * joined
    return tables + layers + adapter + vision.count("vision_output_dim") * text_size


def _gemma4(vision: Fields, text_size: int) -> int:
    size, patch = vision.count("hidden_size"), vision.count("patch_size")
    depth = vision.count("num_hidden_layers")
    layer = _layer(size, vision.count("intermediate_size"), gated=True, bias=False, norms=4)
    tables = _CHANNELS * patch**2 * size + 2 * vision.count("position_embedding_size") * size
    return tables + depth * (layer + 2 * vision.count("head_dim")) + size * text_size


def _moonvit(vision: Fields, text_size: int) -> int | None:
    """With the merger of Kimi K2.5; that of K3 is another."""
    if vision.text("mm_projector_type") != "patchmerger":
        return None
    size, patch = vision.count("vt_hidden_size"), vision.count("patch_size")
    positions = vision.count("init_pos_emb_height") * vision.count("init_pos_emb_width")
    merge = vision.any("merge_kernel_size")
    if (
        not isinstance(merge, list)
        or not merge
        or not all(type(one) is int and 0 < one < 100 for one in merge)
    ):
        vision.refuse(("merge_kernel_size",), "no list of numbers")
    depth = vision.count("vt_num_hidden_layers")
    layers = depth * _layer(size, vision.count("vt_intermediate_size"), gated=False, bias=True, norms=4)
    tables = (_CHANNELS * patch**2 + 1) * size + positions * size
    return tables + layers + 2 * size + _merger(size, size * prod(merge), text_size, 2 * size)


def _clip(vision: Fields) -> int:
    """With the class's own token, and norms before and after the layers."""
    size, patch = vision.count("hidden_size"), vision.count("patch_size")
    positions = (vision.count("image_size") // patch) ** 2 + 1
    layer = _layer(size, vision.count("intermediate_size"), gated=False, bias=True, norms=4)
    tables = _CHANNELS * patch**2 * size + size + positions * size
    return tables + vision.count("num_hidden_layers") * layer + 4 * size


def _pixtral(vision: Fields) -> int:
    """Patches of any number, whose places are turned in and have no table."""
    size, patch = vision.count("hidden_size"), vision.count("patch_size")
    layer = _layer(size, vision.count("intermediate_size"), gated=True, bias=False, norms=2)
    return _CHANNELS * patch**2 * size + size + vision.count("num_hidden_layers") * layer


def _two_layers(vision: Fields, whole: Fields, text_size: int, *, bias: bool = True) -> int:
    """Each patch through two layers into the text's width."""
    _of_one_layer(whole)
    biases = 2 * text_size if whole.flag("multimodal_projector_bias", default=bias) else 0
    return (vision.count("hidden_size") + text_size) * text_size + biases


def _merged_patches(vision: Fields, whole: Fields, text_size: int) -> int:
    """Neighbouring patches normed and made one before the two layers."""
    size, merge = vision.count("hidden_size"), whole.count("spatial_merge_size")
    return size + merge**2 * size * size + _two_layers(vision, whole, text_size, bias=False)


def _of_one_layer(whole: Fields) -> None:
    layer = whole.value("vision_feature_layer")
    if isinstance(layer, list) and len(layer) > 1:
        whole.refuse(("vision_feature_layer",), "several layers; these together have no formula here")


_Joint = Callable[[Fields, Fields, int], int]
# Towers that several classes share, by class and tower, each with what joins it to the text.
_JOINED: Final[Mapping[str, tuple[Callable[[Fields], int], _Joint]]] = {
    "llava/clip_vision_model": (_clip, _two_layers),
    "llava/pixtral": (_pixtral, _two_layers),
    "mistral3/pixtral": (_pixtral, _merged_patches),
}
_FORMULAS: Final[Mapping[str | None, Callable[[Fields, int], int | None]]] = {
    "qwen3_vl": _qwen3,
    "qwen3_vl_moe": _qwen3,
    "qwen3_5": _qwen3,
    "qwen3_5_moe": _qwen3,
    "qwen2_vl": _qwen2,
    "qwen2_5_vl": _qwen2_5,
    "gemma3/siglip_vision_model": _siglip,
    "llama4_vision_model": _llama4,
    "gemma4_vision": _gemma4,
    "kimi_k25": _moonvit,
}
