"""Decoders with latent attention (MLA), and DeepSeek-V4's compressed kind."""

from dataclasses import replace
from typing import Final

from costsvc.ingest.hugging_face.family import Blocks, Family, Prediction, Switch

_DEEPSEEK_V3: Final = Family(
    types=("deepseek_v3", "kimi_k2", "glm4_moe_lite"),
    mixer="latent",
    blocks=Blocks(experts="first_dense", shares=True, router_bias=True),
    mtp=Prediction(tables=2),
)
_DEEPSEEK_V32: Final = replace(_DEEPSEEK_V3, types=("deepseek_v32",), order=("layer_types",), indexed=True)

FAMILIES: Final = (
    Family(types=("minicpm3",), mixer="latent", value_dim_from_hidden_size=True, tied=True),
    Family(types=("youtu",), mixer="latent", tied=True),
    Family(
        types=("deepseek_v2",),
        mixer=Switch(flag="use_mla", on="latent", off="heads", default=True),
        blocks=Blocks(experts="first_dense", shares=True),
    ),
    _DEEPSEEK_V3,
    _DEEPSEEK_V32,
    replace(
        _DEEPSEEK_V32,
        types=("glm_moe_dsa",),
        mtp=Prediction(),
        ignored=("index_share_for_mtp_iteration", "indexer_rope_interleave", "index_topk_pattern"),
    ),
    Family(types=("mistral4",), mixer="latent", blocks=Blocks(experts="first_dense", shares=True)),
    Family(
        types=("kimi_linear",),
        mixer="latent",
        order=("linear_attn_config", "layer_types"),
        otherwise="",
        recurrent="kimi_delta",
        blocks=Blocks(experts="first_dense", shares=True, router_bias=True),
        ignored=("mla_use_nope", "latent_moe_use_norm", "attn_res_block_size"),
    ),
    Family(
        types=("deepseek_v4", "deepseek_ref"),
        mixer="compressed",
        blocks=Blocks(experts="always", shares=True, router_bias=True),
        mtp=Prediction(norm_vectors=4),
        ignored=("num_hash_layers", "hc_mult", "hc_sinkhorn_iters"),
    ),
)
