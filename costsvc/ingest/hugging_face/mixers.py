"""The mixer of each layer: attention of every kind, and recurrent layers."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import Any, Final

from costsvc.engine.attention import (
    Attention,
    ChunkedAttention,
    CompressedAttention,
    FullAttention,
    LatentAttention,
    RecurrentState,
    SlidingAttention,
    SparseIndexer,
)
from costsvc.engine.attention import mixers as recurrent
from costsvc.ingest.hugging_face.family import Family, Sizes, form
from costsvc.ingest.hugging_face.fields import Fields
from costsvc.ingest.hugging_face.order import CHUNKED, DENSE, EXPERTS, FULL, RECURRENT, SLIDING, Kinds

QUERY_HEADS: Final = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_KV_HEADS: Final = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads", "multi_query_group_num")
_HEAD_DIM: Final = ("head_dim", "attention_head_dim", "kv_channels")
_WINDOW: Final = ("sliding_window", "sliding_window_size", "window_size")
_VALUE_BYTES: Final[Mapping[str, float]] = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}
# Jamba and Mamba take this share of the hidden size as rank of the step.
_STEP_RANK_DIVISOR: Final = 16


def mixers(fields: Fields, family: Family, sizes: Sizes, kinds: Kinds) -> list[Attention | None]:
    """The mixer of each layer, in order; None where a layer is a feed-forward block alone."""
    built: dict[str, Attention | None] = {EXPERTS: None, DENSE: None}
    built_of = form(fields, family.mixer)
    if built_of == "latent":
        return _latent_layers(fields, family, sizes, kinds)
    if built_of == "compressed":
        return _compressed_layers(fields, sizes)
    for kind in dict.fromkeys(kinds):
        if kind == RECURRENT:
            built[kind] = _recurrent(fields, family, sizes)
        elif kind not in built:
            built[kind] = _heads(fields, family, sizes, kind)
    fields.ignore(*QUERY_HEADS, *_KV_HEADS, *_HEAD_DIM)
    return _sharing_kv(fields, _indexing(fields, [built[kind] for kind in kinds]))


def _heads(fields: Fields, family: Family, sizes: Sizes, kind: str) -> FullAttention:
    """Attention with heads of one kind of layer."""
    said = family.heads
    renamed = said.of_kind.get(kind, {})
    for name in said.decisive.get(kind, ()):
        fields.must_state(name)

    def size(part: str, *names: str) -> int | None:
        own = fields.first_count(*renamed[part]) if part in renamed else None
        return own or fields.count_or_none(*names, least=0) or None

    query_heads = size("query_heads", *QUERY_HEADS)
    if query_heads is None:
        fields.missing(*QUERY_HEADS)
    kv_heads = _kv_heads(fields, family, query_heads, size("kv_heads", *_KV_HEADS))
    head_dim = size("head_dim", *_HEAD_DIM) or _head_dim(fields, family, sizes, query_heads)
    value_dim = size("value_dim", "v_head_dim")
    shared: dict[str, Any] = {
        "query_heads": query_heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "value_dim": value_dim if value_dim != head_dim else None,
        "bias": form(fields, said.bias),
        "qk_norm": form(fields, said.qk_norm),
        "output_gate": form(fields, said.output_gate),
        "sinks": form(fields, said.sinks.get(kind, False)),
        "values_are_keys": bool(
            kind == FULL and said.values_are_keys and fields.flag(said.values_are_keys, default=False)
        ),
    }
    if kind == SLIDING and (window_tokens := fields.count(*_WINDOW)) < _longest_context(fields):
        return SlidingAttention(**shared, window_tokens=window_tokens)
    if kind == CHUNKED:
        return ChunkedAttention(**shared, chunk_tokens=fields.count("attention_chunk_size"))
    fields.ignore(*_WINDOW)
    return FullAttention(**shared)


def _longest_context(fields: Fields) -> float:
    """What a window must be shorter than to be one. [token]"""
    context = fields.value("max_position_embeddings")
    return context if isinstance(context, int) else inf


def _kv_heads(fields: Fields, family: Family, query_heads: int, stated: int | None) -> int:
    single = family.heads.single_kv_head
    if single and not fields.value("new_decoder_architecture") and fields.flag(single, default=True):
        fields.note("num_key_value_heads", 1, single)
        return 1
    fields.ignore(single)
    kv_heads = stated
    if kv_heads is None:
        taken = family.heads.kv_heads
        if taken is None:
            fields.missing(*_KV_HEADS)
        kv_heads = query_heads if taken == "all" else taken
        fields.note("num_key_value_heads", kv_heads, because="not stated; the default of the model class")
    if query_heads % kv_heads:
        fields.refuse(_KV_HEADS, f"{kv_heads}, which does not divide the {query_heads} query heads")
    return kv_heads


def _head_dim(fields: Fields, family: Family, sizes: Sizes, query_heads: int) -> int:
    """The width of a head that no field states: the class's own, or the hidden size shared out."""
    if family.heads.head_dim is not None:
        fields.note("head_dim", family.heads.head_dim, because="not stated; the default of the model class")
        return family.heads.head_dim
    if sizes.hidden_size % query_heads:
        fields.refuse(
            _HEAD_DIM,
            f"not stated, and hidden_size {sizes.hidden_size} is no multiple of {query_heads} heads",
        )
    head_dim = sizes.hidden_size // query_heads
    fields.note(
        "head_dim", head_dim, because=f"not stated; hidden_size {sizes.hidden_size} / {query_heads} heads"
    )
    return head_dim


def _sharing_kv(fields: Fields, layers: list[Attention | None]) -> list[Attention | None]:
    """The last layers reuse the cache of earlier ones (`num_kv_shared_layers`); or groups do (`use_cla`)."""
    last = fields.count_or_none("num_kv_shared_layers", least=0, most=len(layers)) or 0
    every = fields.count_or_none("cla_share_factor") if fields.on("use_cla") else None
    if every is None:
        fields.ignore("cla_share_factor")

    def shares(layer: int) -> bool:
        return layer >= len(layers) - last or (every is not None and layer % every > 0)

    return [_reusing(one) if shares(layer) else one for layer, one in enumerate(layers)]


def _reusing(mixer: Attention | None) -> Attention | None:
    if not isinstance(mixer, FullAttention):
        return mixer
    return replace(mixer, shares_kv=True)


def _indexing(fields: Fields, layers: list[Attention | None]) -> list[Attention | None]:
    """Layers whose tokens an indexer picks by blocks (MiniMax-M3)."""
    section = fields.section("sparse_attention_config")
    if section is None or not section.on("use_sparse_attention"):
        return layers
    picks = section.per_layer("sparse_attention_freq", len(layers), int) or [1] * len(layers)
    tokens = section.count("sparse_topk_blocks") * section.count("sparse_block_size")
    indexer = SparseIndexer(
        selected_tokens=tokens,
        heads=section.count("sparse_num_index_heads"),
        head_dim=section.count("sparse_index_dim"),
    )
    return [
        replace(one, indexer=indexer) if pick and type(one) is FullAttention else one
        for one, pick in zip(layers, picks, strict=True)
    ]


def _latent_layers(fields: Fields, family: Family, sizes: Sizes, kinds: Kinds) -> list[Attention | None]:
    """MLA, with recurrent layers between where the family has them. Its `head_dim` is nothing's width."""
    fields.ignore(*_HEAD_DIM, *_KV_HEADS, "qk_head_dim")
    indexers = _indexers(fields, family, len(kinds))
    state = _recurrent(fields, family, sizes) if RECURRENT in kinds else None
    fields.must_state("q_lora_rank")
    latent = LatentAttention(
        query_heads=fields.count(*QUERY_HEADS),
        latent_dim=fields.count("kv_lora_rank"),
        rope_dim=fields.count("qk_rope_head_dim"),
        nope_dim=fields.count("qk_nope_head_dim"),
        value_dim=_value_dim(fields, family, sizes),
        query_latent_dim=fields.count_or_none("q_lora_rank"),
        output_gate=fields.on("mla_use_output_gate"),
    )
    return [
        state if kind == RECURRENT else replace(latent, indexer=indexer)
        for kind, indexer in zip(kinds, indexers, strict=True)
    ]


def _value_dim(fields: Fields, family: Family, sizes: Sizes) -> int:
    """The width of a value head, which MiniCPM3's class takes as the hidden size shared out."""
    stated = fields.count_or_none("v_head_dim")
    if stated is not None:
        return stated
    query_heads = fields.count(*QUERY_HEADS)
    if not family.value_dim_from_hidden_size or sizes.hidden_size % query_heads:
        fields.missing("v_head_dim")
    value_dim = sizes.hidden_size // query_heads
    fields.note(
        "v_head_dim", value_dim, because=f"not stated; hidden_size {sizes.hidden_size} / {query_heads} heads"
    )
    return value_dim


def _indexers(fields: Fields, family: Family, layers: int) -> list[SparseIndexer | None]:
    """The indexer of each layer; one marked `shared` reuses an earlier layer's choice and has no tensors."""
    if family.indexed:
        fields.must_state("index_topk")
    selected = fields.count_or_none("index_topk")
    if selected is None:
        return [None] * layers
    own = SparseIndexer(
        selected_tokens=selected, heads=fields.count("index_n_heads"), head_dim=fields.count("index_head_dim")
    )
    types = fields.per_layer("indexer_types", layers, str)
    if types is None:
        if (fields.count_or_none("index_topk_freq") or 1) > 1:
            fields.missing("indexer_types")
        return [own] * layers
    fields.ignore("index_topk_freq", "index_skip_topk_offset")
    if unknown := set(types) - {"full", "shared"}:
        fields.refuse(("indexer_types",), f"of '{min(unknown)}'; known are full and shared")
    return [own if word == "full" else SparseIndexer(selected) for word in types]


def _compressed_layers(fields: Fields, sizes: Sizes) -> list[Attention | None]:
    """DeepSeek-V4's: one ratio per layer, 0 for the window alone; those of prediction layers come after."""
    ratios = fields.any("compress_ratios")
    if not isinstance(ratios, list) or not all(type(one) is int and one >= 0 for one in ratios):
        fields.missing("compress_ratios")
    extra = fields.count_or_none("num_nextn_predict_layers", least=0) or 0
    if len(ratios) not in (sizes.layers, sizes.layers + extra):
        fields.refuse(("compress_ratios",), f"a list of {len(ratios)}, but there are {sizes.layers} layers")
    fields.ignore(*_KV_HEADS, "qk_rope_head_dim")
    fields.note("layers", f"{len(set(ratios))} ratios of compression in order", "compress_ratios")
    smallest = min((ratio for ratio in ratios if ratio), default=0)
    indexer = SparseIndexer(
        selected_tokens=fields.count("index_topk"),
        heads=fields.count("index_n_heads"),
        head_dim=fields.count("index_head_dim"),
    )
    attention = CompressedAttention(
        query_heads=fields.count(*QUERY_HEADS),
        head_dim=fields.count("head_dim"),
        window_tokens=fields.count(*_WINDOW),
        query_latent_dim=fields.count("q_lora_rank"),
        output_groups=fields.count("o_groups"),
        output_latent_dim=fields.count("o_lora_rank"),
        compress_ratio=0,
    )
    return [
        replace(attention, compress_ratio=ratio, indexer=indexer if ratio and ratio == smallest else None)
        for ratio in ratios[: sizes.layers]
    ]


def _recurrent(fields: Fields, family: Family, sizes: Sizes) -> RecurrentState:
    if not family.recurrent:
        fields.refuse(("layer_types",), "of recurrent layers, which this family has no formula for")
    built = _STATES[family.recurrent](fields, sizes)
    word = fields.text("mamba_ssm_cache_dtype", "mamba_ssm_dtype")
    if word is None:
        return built
    if word not in _VALUE_BYTES:
        fields.refuse(
            ("mamba_ssm_cache_dtype", "mamba_ssm_dtype"), f"'{word}'; known are {', '.join(_VALUE_BYTES)}"
        )
    fields.note("state_value_bytes", _VALUE_BYTES[word], "mamba_ssm_cache_dtype", "mamba_ssm_dtype")
    return replace(built, state_value_bytes=_VALUE_BYTES[word])


def _mamba1(fields: Fields, sizes: Sizes) -> RecurrentState:
    inner_size = fields.count("mamba_expand", "expand") * sizes.hidden_size
    rank = fields.any("mamba_dt_rank", "time_step_rank")
    step_rank = -(-sizes.hidden_size // _STEP_RANK_DIVISOR) if rank in (None, "auto") else rank
    if type(step_rank) is not int or step_rank < 1:
        fields.refuse(("mamba_dt_rank", "time_step_rank"), f"{step_rank!r}; it must be a number or auto")
    return recurrent.mamba1(
        hidden_size=sizes.hidden_size,
        inner_size=inner_size,
        state_size=fields.count("mamba_d_state", "state_size"),
        step_rank=step_rank,
        kernel_size=fields.count("mamba_d_conv", "conv_kernel"),
        conv_bias=fields.flag("mamba_conv_bias", "use_conv_bias", default=True),
        projection_bias=fields.flag("mamba_proj_bias", "use_bias", default=False),
        inner_norms="mamba_d_state" in fields,
    )


def _mamba2(fields: Fields, sizes: Sizes) -> RecurrentState:
    fields.ignore("mamba_expand", "expand", "time_step_rank")
    # A model of these layers alone has their heads under the plain names.
    plain = ("num_heads", "head_dim") if "num_heads" in fields else ()
    return recurrent.mamba2(
        hidden_size=sizes.hidden_size,
        heads=_stated(fields, "mamba_n_heads", "mamba_num_heads", *plain[:1]),
        head_dim=_stated(fields, "mamba_d_head", "mamba_head_dim", *plain[1:]),
        state_size=_stated(fields, "mamba_d_state", "ssm_state_size", "state_size"),
        groups=fields.count("mamba_n_groups", "n_groups"),
        kernel_size=fields.count("mamba_d_conv", "conv_kernel"),
        conv_bias=fields.flag("mamba_conv_bias", "use_conv_bias", default=True),
        projection_bias=fields.flag("mamba_proj_bias", "use_bias", default=False),
    )


def _stated(fields: Fields, *names: str) -> int:
    """The first of several fields, one of which must be there."""
    value = fields.first_count(*names)
    if value is None:
        fields.missing(*names)
    return value


def _gated_delta(fields: Fields, sizes: Sizes) -> RecurrentState:
    return recurrent.gated_delta(
        hidden_size=sizes.hidden_size,
        key_heads=fields.count("linear_num_key_heads"),
        value_heads=fields.count("linear_num_value_heads"),
        key_dim=fields.count("linear_key_head_dim"),
        value_dim=fields.count("linear_value_head_dim"),
        kernel_size=fields.count("linear_conv_kernel_dim"),
    )


def _kimi_delta(fields: Fields, sizes: Sizes) -> RecurrentState:
    section = fields.section("linear_attn_config")
    if section is None:
        fields.missing("linear_attn_config")
    return recurrent.kimi_delta(
        hidden_size=sizes.hidden_size,
        heads=section.count("num_heads"),
        head_dim=section.count("head_dim"),
        kernel_size=section.count("short_conv_kernel_size"),
        full_rank_gate=section.flag("use_full_rank_gate", default=False),
    )


def _lightning(fields: Fields, sizes: Sizes) -> RecurrentState:
    return recurrent.lightning(
        hidden_size=sizes.hidden_size,
        heads=fields.count(*QUERY_HEADS),
        head_dim=fields.count(*_HEAD_DIM),
    )


def _short_convolution(fields: Fields, sizes: Sizes) -> RecurrentState:
    return recurrent.short_convolution(
        hidden_size=sizes.hidden_size,
        kernel_size=fields.count("conv_L_cache"),
        bias=fields.flag("conv_bias", default=False),
    )


_STATES: Final[Mapping[str, Callable[[Fields, Sizes], RecurrentState]]] = {
    "mamba1": _mamba1,
    "mamba2": _mamba2,
    "gated_delta": _gated_delta,
    "kimi_delta": _kimi_delta,
    "lightning": _lightning,
    "short_convolution": _short_convolution,
}
