"""Shapes to parameter counts, and to the weight bytes that one accelerator holds."""

from dataclasses import dataclass

import numpy as np

from costsvc.engine.attention import Floats
from costsvc.engine.formulas import touched_experts
from costsvc.engine.specs import DenseFfn, Ffn, LayerGroup, ModelSpec, MoeFfn

GATED_MATRICES = 3
PLAIN_MATRICES = 2
FFN_PRODUCTS = 2
ROUTED_PRODUCTS = 3
PLAIN_LAYER_PRODUCTS = 4


@dataclass(frozen=True, slots=True)
class LayerParameters:
    """Parameters of one layer by how they are split and stored. [parameters]

    `attention_heads` and `ffn` split over TP, `attention_kv` over KV heads, `experts` over all ranks;
    `attention_whole`, `router` and `norms` are on every rank.
    """

    attention_heads: int = 0
    attention_kv: int = 0
    attention_whole: int = 0
    ffn: int = 0
    experts: int = 0
    router: int = 0
    norms: int = 0

    @property
    def total(self) -> int:
        """All of them. [parameters]"""
        attention = self.attention_heads + self.attention_kv + self.attention_whole
        return attention + self.ffn + self.experts + self.router + self.norms


def matrices(ffn: Ffn) -> int:
    """Weight matrices of a feed-forward block: gate, up and down, or up and down."""
    return GATED_MATRICES if ffn.gated else PLAIN_MATRICES


def expert_parameters(ffn: MoeFfn, hidden_size: int) -> int:
    """Parameters of one routed expert. [parameters]"""
    width = ffn.latent_size or hidden_size
    bias = (matrices(ffn) - 1) * ffn.intermediate_size + width if ffn.bias else 0
    return matrices(ffn) * width * ffn.intermediate_size + bias


def layer_parameters(group: LayerGroup, hidden_size: int) -> LayerParameters:
    """Parameters of one layer of a group.

    Examples
    --------
    >>> from costsvc.engine.attention import FullAttention
    >>> llama = LayerGroup(
    ...     attention=FullAttention(query_heads=64, kv_heads=8, head_dim=128), ffn=DenseFfn(intermediate_size=28672)
    ... )
    >>> layer_parameters(llama, 8192).total
    855654400
    """
    attention = group.attention
    heads = kv = whole = 0
    if attention is not None:
        heads = attention.sharded_parameters(hidden_size)
        kv = attention.kv_parameters(hidden_size)
        whole = attention.replicated_parameters(hidden_size)
    dense, experts, router = _ffn_parameters(group.ffn, hidden_size)
    return LayerParameters(
        attention_heads=heads,
        attention_kv=kv,
        attention_whole=whole,
        ffn=dense,
        experts=experts,
        router=router,
        norms=group.norm_vectors * hidden_size,
    )


def layer_products(group: LayerGroup) -> int:
    """Matrix products that one layer launches, gate and up as one: 4 in a plain layer, 10 in DeepSeek-V3's. [1]

    Around each go its norm, rotation, activation or routing, so they measure what a layer launches at all.
    """
    mixer = 0 if group.attention is None else group.attention.products
    if group.ffn is None:
        return mixer
    if isinstance(group.ffn, DenseFfn):
        return mixer + FFN_PRODUCTS
    return mixer + ROUTED_PRODUCTS + (FFN_PRODUCTS if group.ffn.shared_intermediate_size else 0)


def embedding_parameters(model: ModelSpec) -> int:
    """One table of token vectors; the head is a second one unless tied. [parameters]"""
    return model.vocab_size * model.hidden_size


def parameter_count(model: ModelSpec) -> int:
    """All parameters a deployment loads without speculation: text and resident towers. [parameters]"""
    layers = sum(layer_parameters(model.groups[index], model.hidden_size).total for index in model.pattern)
    tables = embedding_parameters(model) * (1 if model.tied_embeddings else 2)
    rest = model.position_values + model.hidden_size + model.extra_parameters + model.resident_parameters
    return layers + tables + rest


def active_parameter_count(model: ModelSpec) -> int:
    """Parameters that one token meets: of the routed experts, its own. The input table counts. [parameters]"""
    unused = 0
    for index in model.pattern:
        ffn = model.groups[index].ffn
        if isinstance(ffn, MoeFfn):
            unused += (ffn.experts - ffn.experts_per_token) * expert_parameters(ffn, model.hidden_size)
    return parameter_count(model) - model.resident_parameters - unused


def distinct_experts(ffn: MoeFfn, tokens: Floats, evenness_ratio: Floats) -> Floats:
    """Expected experts that a batch touches, see `formulas.touched_experts`. [experts]

    Examples
    --------
    >>> mixtral = MoeFfn(experts=8, experts_per_token=2, intermediate_size=1)
    >>> [round(float(distinct_experts(mixtral, 1.0, evenness_ratio)), 9) for evenness_ratio in (0.5, 1e9)]
    [2.0, 2.0]
    """
    touched: Floats = touched_experts(tokens, ffn.experts, spread_ratio(ffn, evenness_ratio), evenness_ratio)
    return touched


def spread_ratio(ffn: MoeFfn, evenness_ratio: Floats) -> Floats:
    r"""How fast a batch spreads over the experts, :math:`(1 - k/E)^{-1/\kappa} - 1`: see `touched_experts`. [1]"""
    share = ffn.experts_per_token / ffn.experts
    return np.expm1(-np.log1p(-share) / evenness_ratio) if share < 1 else np.inf


def _ffn_parameters(ffn: Ffn | None, hidden_size: int) -> tuple[int, int, int]:
    """Dense (and shared), routed and router parameters."""
    if ffn is None:
        return 0, 0, 0
    if isinstance(ffn, DenseFfn):
        bias = (matrices(ffn) - 1) * ffn.intermediate_size + hidden_size if ffn.bias else 0
        return matrices(ffn) * hidden_size * ffn.intermediate_size + bias, 0, 0
    shared = matrices(ffn) * hidden_size * ffn.shared_intermediate_size
    latent = 2 * hidden_size * ffn.latent_size if ffn.latent_size else 0
    router = hidden_size * ffn.experts + (ffn.experts if ffn.router_bias else 0)
    return shared + latent, ffn.experts * expert_parameters(ffn, hidden_size), router
