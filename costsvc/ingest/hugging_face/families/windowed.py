"""Decoders whose layers differ in what they see: sliding windows, chunks, widths by kind."""

from typing import Final

from costsvc.ingest.hugging_face.families.dense import BIAS_BY_FLAG
from costsvc.ingest.hugging_face.family import Blocks, Family, Heads, Sizes, Switch, Worded
from costsvc.ingest.hugging_face.fields import Fields
from costsvc.ingest.hugging_face.order import sliding_but_every, windowed_as_stated

_GEMMA4_HEADS: Final = Heads(
    bias=BIAS_BY_FLAG,
    qk_norm="head",
    head_dim=256,
    of_kind={"full": {"head_dim": ("global_head_dim",), "kv_heads": ("num_global_key_value_heads",)}},
    decisive={"full": ("global_head_dim",)},
    values_are_keys="attention_k_eq_v",
)


def _gemma4_norms(fields: Fields) -> int:
    """Before and after attention and block; three more beside experts, one more after per-layer inputs."""
    experts = 4 if fields.on("enable_moe_block") else 0
    return 4 + experts + (1 if fields.count_or_none("hidden_size_per_layer_input", least=0) else 0)


def _gemma4_extra(fields: Fields, sizes: Sizes) -> int:
    """A table of vectors per layer and their projections (E2B, E4B); a scale per expert (26B)."""
    fields.must_state("hidden_size_per_layer_input")
    width = fields.count_or_none("hidden_size_per_layer_input", least=0)
    if not width:
        fields.ignore("vocab_size_per_layer_input")
        experts = fields.on("enable_moe_block")
        return sizes.layers * fields.count("num_experts") if experts else 0
    table = fields.count("vocab_size_per_layer_input") * sizes.layers * width
    projections = 3 * sizes.hidden_size * width * sizes.layers
    return table + projections + width


FAMILIES: Final = (
    Family(
        types=("mistral", "ministral", "ministral3"),
        order=("layer_types", windowed_as_stated),
        heads=Heads(),
        defaults={"num_attention_heads": 32, "vocab_size": 32000},
    ),
    Family(types=("phi3",), order=("sliding_window",), heads=Heads(bias=BIAS_BY_FLAG, kv_heads="all")),
    Family(
        types=("gemma2",),
        order=("layer_types", sliding_but_every(2)),
        otherwise="",
        heads=Heads(bias=BIAS_BY_FLAG, head_dim=256),
        norm_vectors=4,
        tied=True,
    ),
    Family(
        types=("vaultgemma",),
        order=("layer_types", sliding_but_every(2)),
        otherwise="",
        heads=Heads(bias=BIAS_BY_FLAG, head_dim=256),
        tied=True,
    ),
    Family(
        types=("gemma3_text", "gemma3"),
        order=("layer_types", "sliding_window_pattern", "_sliding_window_pattern", sliding_but_every(6)),
        otherwise="",
        heads=Heads(bias=BIAS_BY_FLAG, qk_norm="head", head_dim=256),
        norm_vectors=4,
        tied=True,
        defaults={
            "vocab_size": 262208,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "max_position_embeddings": 131072,
        },
        ignored=("use_bidirectional_attention",),
    ),
    Family(
        types=("gemma4_text", "gemma4_unified_text"),
        order=("layer_types",),
        otherwise="",
        heads=_GEMMA4_HEADS,
        blocks=Blocks(experts="flagged", shares=True, shared=("intermediate_size",)),
        norm_vectors=_gemma4_norms,
        further=_gemma4_extra,
        tied=True,
        ignored=("use_bidirectional_attention",),
    ),
    Family(
        types=("cohere2",),
        order=("layer_types", "sliding_window_pattern", "_sliding_window_pattern", sliding_but_every(4)),
        otherwise="",
        heads=Heads(bias=BIAS_BY_FLAG),
        norm_vectors=1,
        tied=True,
        ignored=(
            "use_parallel_block",
            "use_gated_activation",
            "use_parallel_embedding",
            "order_of_interleaved_layers",
        ),
    ),
    Family(
        types=("olmo3",),
        order=("layer_types", "sliding_window_pattern", sliding_but_every(4)),
        otherwise="",
        heads=Heads(bias=BIAS_BY_FLAG, qk_norm="full"),
    ),
    Family(
        types=("exaone4",),
        order=("layer_types", "sliding_window_pattern"),
        heads=Heads(qk_norm="head"),
    ),
    Family(types=("cwm",), order=("layer_types",), heads=Heads(head_dim=128)),
    Family(
        types=("gpt_oss",),
        order=("layer_types", sliding_but_every(2)),
        otherwise="",
        heads=Heads(
            bias=Switch(flag="attention_bias", on="qkvo", off="none", default=True),
            sinks={"sliding": True, "full": True},
            head_dim=64,
            kv_heads=8,
        ),
        blocks=Blocks(experts="always", width=("intermediate_size",), bias=True, router_bias=True),
    ),
    Family(
        types=("llama4_text", "llama4"),
        order=("layer_types", "attention_chunk_size"),
        heads=Heads(bias=BIAS_BY_FLAG, head_dim=128, kv_heads=8),
        blocks=Blocks(
            experts="interleaved",
            width=("intermediate_size",),
            dense_width=("intermediate_size_mlp",),
            shared=("intermediate_size",),
        ),
        # Its norm of queries and keys has no weights.
        ignored=("use_qk_norm", "attn_temperature_tuning", "floor_scale", "for_llm_compressor"),
    ),
    Family(
        types=("mimo_v2_flash", "mimo_v2"),
        order=("hybrid_layer_pattern", "layer_types"),
        otherwise="",
        heads=Heads(
            bias=BIAS_BY_FLAG,
            of_kind={
                "sliding": {
                    "query_heads": ("swa_num_attention_heads",),
                    "kv_heads": ("swa_num_key_value_heads",),
                    "head_dim": ("swa_head_dim",),
                    "value_dim": ("swa_v_head_dim",),
                }
            },
            decisive={
                "sliding": ("swa_num_key_value_heads", "swa_head_dim", "swa_v_head_dim"),
                "full": ("v_head_dim",),
            },
            sinks={
                "sliding": Switch(flag="add_swa_attention_sink_bias", on=True, off=False),
                "full": Switch(flag="add_full_attention_sink_bias", on=True, off=False),
            },
        ),
        blocks=Blocks(experts="first_dense", router_bias=True),
        ignored=("attention_value_scale", "attention_chunk_size"),
    ),
    Family(
        types=("step3p7", "step3p5"),
        order=("layer_types",),
        otherwise="",
        heads=Heads(
            qk_norm="head",
            output_gate="head",
            of_kind={"sliding": {"query_heads": ("num_sliding_attention_heads",)}},
            decisive={"sliding": ("num_sliding_attention_heads",)},
        ),
        blocks=Blocks(
            experts="first_dense",
            shares=True,
            shared=("share_expert_dim",),
            router_bias=Switch(flag="use_moe_router_bias", on=True, off=False),
        ),
    ),
    Family(
        types=("minimax_m3", "minimax_m3_vl", "minimax_m3_vl_text"),
        heads=Heads(
            qk_norm=Worded(
                field="qk_norm_type", default="per_head", forms={"per_head": "head", "per_layer": "full"}
            ),
            bias=BIAS_BY_FLAG,
            output_gate=Switch(flag="attention_output_gate", on="full", off="none"),
            decisive={"full": ("sparse_attention_config",)},
        ),
        blocks=Blocks(
            experts="first_dense",
            dense_width=("dense_intermediate_size",),
            width=("moe_intermediate_size", "intermediate_size"),
            shares=True,
            shared=("shared_intermediate_size",),
            router_bias=Switch(flag="use_routing_bias", on=True, off=False),
        ),
        ignored=("use_qk_norm", "use_gemma_norm", "num_nextn_predict_layers", "num_mtp_modules"),
    ),
)
