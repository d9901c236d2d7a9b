"""Mixtures of experts with attention by heads, all layers of one kind."""

from typing import Final

from costsvc.ingest.hugging_face.families.dense import BIAS_BY_FLAG
from costsvc.ingest.hugging_face.family import Blocks, Family, Heads, Norm, Prediction, Switch, Worded

_QK_NORM_BY_FLAG: Final[Switch[Norm]] = Switch(flag="use_qk_norm", on="head", off="none")

FAMILIES: Final = (
    Family(
        types=("mixtral",),
        order=("sliding_window",),
        blocks=Blocks(experts="always", width=("intermediate_size",)),
    ),
    Family(
        types=("phimoe",),
        order=("sliding_window",),
        heads=Heads(bias=BIAS_BY_FLAG),
        blocks=Blocks(experts="always", width=("intermediate_size",)),
        norm_vectors=4,
        final_norm_vectors=2,
        head_bias=Switch(flag="lm_head_bias", on=True, off=False),
    ),
    Family(
        types=("dbrx",),
        blocks=Blocks(experts="always", width=("ffn_hidden_size",)),
        merged=("attn_config", "ffn_config"),
    ),
    Family(
        types=("olmoe",),
        heads=Heads(bias=BIAS_BY_FLAG, qk_norm="full"),
        blocks=Blocks(experts="always", width=("intermediate_size",)),
    ),
    Family(
        types=("granitemoe", "granitemoeshared"),
        heads=Heads(bias=BIAS_BY_FLAG, kv_heads="all"),
        blocks=Blocks(experts="always", width=("intermediate_size",), shared=("shared_intermediate_size",)),
    ),
    Family(
        types=("grok-1",),
        blocks=Blocks(experts="always", width=("intermediate_size",)),
        norm_vectors=4,
        tied=True,
    ),
    Family(
        types=("qwen2_moe",),
        order=("layer_types", "use_sliding_window"),
        heads=Heads(bias=Switch(flag="qkv_bias", on="qkv", off="none", default=True)),
        blocks=Blocks(
            experts="step", shares=True, shared=("shared_expert_intermediate_size",), shared_gate=True
        ),
    ),
    Family(
        types=("qwen3_moe", "qwen3_vl_moe_text"),
        order=("layer_types", "use_sliding_window"),
        heads=Heads(bias=BIAS_BY_FLAG, qk_norm="head", head_dim=128),
        blocks=Blocks(experts="step"),
        ignored=("qkv_bias",),
    ),
    Family(
        types=("deepseek",),
        heads=Heads(bias=BIAS_BY_FLAG, kv_heads="all"),
        blocks=Blocks(experts="first_dense", shares=True),
    ),
    Family(
        types=("dots1",),
        order=("layer_types", "use_sliding_window"),
        heads=Heads(bias=BIAS_BY_FLAG, qk_norm="head"),
        blocks=Blocks(experts="first_dense", shares=True, router_bias=True),
    ),
    Family(
        types=("glm4_moe", "glm4v_moe_text"),
        heads=Heads(
            bias=Switch(flag="attention_bias", on="qkv", off="none"), qk_norm=_QK_NORM_BY_FLAG, head_dim=None
        ),
        blocks=Blocks(experts="first_dense", shares=True, router_bias=True),
        mtp=Prediction(tables=2),
    ),
    Family(
        types=("hy_v3",),
        heads=Heads(bias=BIAS_BY_FLAG, qk_norm="head", head_dim=128),
        blocks=Blocks(experts="first_dense", shares=True, router_bias=True),
        mtp=Prediction(),
        ignored=(
            "qk_norm",
            "enable_attention_fp32_softmax",
            "enable_lm_head_fp32",
            "enable_moe_fp32_combine",
        ),
    ),
    Family(
        types=("hunyuan_v1_moe", "hunyuan_moe"),
        heads=Heads(
            bias=BIAS_BY_FLAG, qk_norm=Switch(flag="use_qk_norm", on="head", off="none", default=True)
        ),
        blocks=Blocks(experts="always", shares=True, width=("moe_intermediate_size", "intermediate_size")),
        tied=None,
        ignored=("use_mixed_mlp_moe", "moe_layer_num_skipped", "mlp_bias"),
    ),
    Family(
        types=("ernie4_5_moe",),
        heads=Heads(bias=Switch(flag="use_bias", on="qkvo", off="none")),
        blocks=Blocks(experts="range", shares=True, router_bias=True),
        tied=True,
        mtp=Prediction(norm_vectors=2, dense=True),
        ignored=("moe_use_aux_free", "moe_gate", "moe_capacity"),
    ),
    Family(
        types=("bailing_moe",),
        heads=Heads(bias=Switch(flag="use_qkv_bias", on="qkv", off="none")),
        blocks=Blocks(experts="first_dense", shares=True),
        ignored=("norm_head", "norm_softmax", "use_bias"),
    ),
    Family(
        types=("bailing_moe_v2",),
        heads=Heads(bias=Switch(flag="use_qkv_bias", on="qkv", off="none"), qk_norm=_QK_NORM_BY_FLAG),
        blocks=Blocks(
            experts="first_dense",
            shares=True,
            router_bias=Switch(flag="moe_router_enable_expert_bias", on=True, off=False),
        ),
        mtp=Prediction(),
        ignored=("use_bias", "use_rmsnorm"),
    ),
    Family(
        types=("minimax_m2",),
        order=("attn_type_list",),
        heads=Heads(
            qk_norm=Worded(
                field="qk_norm_type", default="per_layer", forms={"per_layer": "full", "per_head": "head"}
            )
        ),
        blocks=Blocks(
            experts="always",
            width=("intermediate_size",),
            shared=("shared_intermediate_size",),
            router_bias=Switch(flag="use_routing_bias", on=True, off=False),
        ),
        # The prediction modules that its configurations list are in no released file.
        ignored=("use_qk_norm", "use_mtp", "mtp_transformer_layers", "num_mtp_modules"),
    ),
)
