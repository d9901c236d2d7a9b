"""The same model with another attention: what heads, latents and windows change, projections included.

Counterfactuals: nobody trained these models. They answer what a cache would hold and cost, and no more.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TypeAlias

from costsvc.engine.attention import Attention, FullAttention, LatentAttention, SlidingAttention
from costsvc.engine.attention.evicting import EvictingAttention
from costsvc.engine.specs import ModelSpec

Reshape: TypeAlias = Callable[[ModelSpec], ModelSpec]

LATENT_DIM = 512
ROPE_DIM = 64
"""What a token keeps in a layer of DeepSeek-V2 and V3 (arXiv:2405.04434, section 3.1.2). [values]"""


def query_heads_of(model: ModelSpec) -> int | None:
    """Query heads of the layers that keep every token; None where there are none or they differ. [heads]"""
    found = {attention.query_heads for attention in _full_layers(model)}
    found |= {
        group.attention.query_heads for group in model.groups if isinstance(group.attention, LatentAttention)
    }
    return found.pop() if len(found) == 1 else None


def has_full_attention(model: ModelSpec) -> bool:
    """Whether any layer keeps every token of every head."""
    return bool(_full_layers(model))


def with_kv_heads(model: ModelSpec, kv_heads: int) -> ModelSpec:
    """All layers of softmax attention with that many KV heads: as many as query heads is MHA, 1 is MQA."""

    def change(attention: Attention) -> Attention:
        if isinstance(attention, FullAttention):
            return replace(attention, kv_heads=kv_heads)
        if isinstance(attention, LatentAttention):
            # The heads that the latent stands for, without the latent.
            return FullAttention(
                query_heads=attention.query_heads,
                kv_heads=kv_heads,
                head_dim=attention.nope_dim + attention.rope_dim,
                value_dim=attention.value_dim,
            )
        return attention

    return _changed(model, change)


def with_latent(model: ModelSpec) -> ModelSpec:
    """Layers of full attention as MLA with the latent of DeepSeek-V2 and V3."""

    def change(attention: Attention) -> Attention:
        if type(attention) is not FullAttention:
            return attention
        return LatentAttention(
            query_heads=attention.query_heads,
            latent_dim=LATENT_DIM,
            rope_dim=ROPE_DIM,
            nope_dim=attention.head_dim,
            value_dim=attention.values_dim,
        )

    return _changed(model, change)


def with_window(model: ModelSpec, window_tokens: int) -> ModelSpec:
    """Layers of full attention that see the last `window_tokens` alone."""
    return _changed(model, lambda attention: _as(attention, SlidingAttention, window_tokens=window_tokens))


def keeping(model: ModelSpec, kept_share: float) -> ModelSpec:
    """Layers of full attention whose cache keeps a share of the tokens."""
    return _changed(model, lambda attention: _as(attention, EvictingAttention, kept_share=kept_share))


def _as(attention: Attention, kind: Callable[..., FullAttention], **more: float) -> Attention:
    if type(attention) is not FullAttention:
        return attention
    same = {one.name: getattr(attention, one.name) for one in fields(FullAttention) if one.name != "kind"}
    return kind(**same, **more)


def _full_layers(model: ModelSpec) -> list[FullAttention]:
    return [
        group.attention
        for group in model.groups
        if isinstance(group.attention, FullAttention) and type(group.attention) is FullAttention
    ]


def _changed(model: ModelSpec, change: Callable[[Attention], Attention]) -> ModelSpec:
    groups = tuple(
        group if group.attention is None else replace(group, attention=change(group.attention))
        for group in model.groups
    )
    return replace(model, groups=groups)
