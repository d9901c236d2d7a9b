"""Decoders that mix attention with recurrent layers, or have these alone."""

from dataclasses import replace
from typing import Final

from costsvc.ingest.hugging_face.families.dense import BIAS_BY_FLAG
from costsvc.ingest.hugging_face.family import Blocks, Family, Heads, Prediction, Switch
from costsvc.ingest.hugging_face.fields import Fields
from costsvc.ingest.hugging_face.order import recurrent_but_every

_QWEN3_5: Final = Family(
    types=("qwen3_5_text", "qwen3_5"),
    order=("layer_types", "full_attention_interval", recurrent_but_every(4)),
    recurrent="gated_delta",
    heads=Heads(
        bias=BIAS_BY_FLAG,
        qk_norm="head",
        output_gate=Switch(flag="attn_output_gate", on="full", off="none", default=True),
        head_dim=256,
    ),
    mtp=Prediction(counted_by=("mtp_num_hidden_layers", "num_nextn_predict_layers")),
    ignored=("mtp_use_dedicated_embeddings", "output_gate_type"),
)
_QWEN3_5_MOE: Final = replace(
    _QWEN3_5,
    types=("qwen3_5_moe_text", "qwen3_5_moe"),
    blocks=Blocks(
        experts="always", shares=True, shared=("shared_expert_intermediate_size",), shared_gate=True
    ),
)


def _adjusted(fields: Fields, stated: int) -> int:
    """LFM2 takes two thirds of the stated size, times a factor, up to a whole multiple."""
    if not fields.flag("block_auto_adjust_ff_dim", default=True):
        return stated
    factor = fields.any("block_ffn_dim_multiplier")
    size = 2 * stated // 3
    if factor is not None:
        if not isinstance(factor, int | float) or isinstance(factor, bool) or not 0 < factor <= 100:
            fields.refuse(("block_ffn_dim_multiplier",), f"{factor!r}; it must be a positive number")
        size = int(factor * size)
    multiple = fields.count("block_multiple_of")
    return multiple * -(-size // multiple)


FAMILIES: Final = (
    _QWEN3_5,
    _QWEN3_5_MOE,
    replace(
        _QWEN3_5_MOE,
        types=("qwen3_next",),
        heads=replace(_QWEN3_5.heads, output_gate="full"),
        blocks=replace(_QWEN3_5_MOE.blocks, experts="step"),
    ),
    Family(
        types=("granitemoehybrid",),
        order=("layer_types",),
        otherwise="",
        recurrent="mamba2",
        heads=Heads(bias=BIAS_BY_FLAG),
        blocks=Blocks(
            experts="always",
            width=("intermediate_size",),
            shares=True,
            shared=("shared_intermediate_size",),
            dense_width=("shared_intermediate_size",),
        ),
        ignored=("mamba_chunk_size", "position_embedding_type", "normalization_function"),
    ),
    Family(
        types=("bamba",),
        order=("attn_layer_indices",),
        otherwise="recurrent",
        recurrent="mamba2",
        heads=Heads(bias=BIAS_BY_FLAG),
        blocks=Blocks(bias=Switch(flag="mlp_bias", on=True, off=False)),
        ignored=("mamba_chunk_size",),
    ),
    Family(
        types=("jamba",),
        order=("attn_layer_period",),
        otherwise="",
        recurrent="mamba1",
        blocks=Blocks(experts="period", width=("intermediate_size",)),
        ignored=("use_mamba_kernels", "mamba_inner_layernorms"),
    ),
    Family(
        types=("mamba", "falcon_mamba"),
        otherwise="recurrent",
        recurrent="mamba1",
        blocks=Blocks(width=()),
        norm_vectors=1,
        tied=True,
        ignored=(
            "intermediate_size",
            "d_inner",
            "d_model",
            "n_layer",
            "rms_norm",
            "fused_add_norm",
            "ssm_cfg",
        ),
    ),
    Family(
        types=("mamba2",),
        otherwise="recurrent",
        recurrent="mamba2",
        blocks=Blocks(width=()),
        norm_vectors=1,
        ignored=("rms_norm", "chunk_size", "intermediate_size"),
    ),
    Family(
        types=("nemotron_h",),
        order=("hybrid_override_pattern", "layers_block_type"),
        otherwise="",
        recurrent="mamba2",
        heads=Heads(bias=BIAS_BY_FLAG),
        blocks=Blocks(
            gated=False,
            bias=Switch(flag="mlp_bias", on=True, off=False),
            shares=True,
            shared=("moe_shared_expert_intermediate_size",),
            router_bias=True,
        ),
        norm_vectors=1,
        mtp=Prediction(norm_vectors=3),
        ignored=(
            "chunk_size",
            "use_mamba_kernels",
            "moe_shared_expert_overlap",
            "mtp_hybrid_override_pattern",
            "mtp_layers_block_type",
            "num_logits_to_keep",
        ),
    ),
    Family(
        types=("lfm2",),
        order=("layer_types", "full_attn_idxs"),
        otherwise="",
        recurrent="short_convolution",
        heads=Heads(qk_norm="head"),
        blocks=Blocks(dense_width=("block_ff_dim", "intermediate_size"), dense_size=_adjusted),
        tied=True,
        ignored=(
            "conv_dim",
            "conv_dim_out",
            "block_dim",
            "conv_use_xavier_init",
            "block_use_swiglu",
            "block_norm_eps",
        ),
    ),
    Family(
        types=("lfm2_moe",),
        order=("layer_types", "full_attn_idxs"),
        otherwise="",
        recurrent="short_convolution",
        heads=Heads(qk_norm="head"),
        blocks=Blocks(
            experts="first_dense",
            router_bias=Switch(flag="use_expert_bias", on=True, off=False, default=True),
        ),
        tied=True,
    ),
    Family(
        types=("minimax", "minimax_text_01", "minimax_m1"),
        order=("attn_type_list", "layer_types"),
        otherwise="",
        recurrent="lightning",
        blocks=Blocks(experts="always", width=("intermediate_size",), shared=("shared_intermediate_size",)),
        ignored=("postnorm", "shared_moe_mode", "block_size"),
    ),
)
