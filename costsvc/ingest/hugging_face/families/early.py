"""Decoders with layer norms, biases, learned positions or plain blocks: the forms before Llama, and some after."""

from dataclasses import replace
from typing import Final

from costsvc.ingest.hugging_face.family import Blocks, Family, Heads, Switch
from costsvc.ingest.hugging_face.fields import Fields

_PLAIN: Final = Blocks(
    gated=False,
    bias=True,
    dense_width=("n_inner", "ffn_dim", "intermediate_size", "ffn_hidden_size"),
    dense_ratio=4,
)


def _opt_is_of_one_width(fields: Fields, stated: int) -> int:
    hidden_size = fields.count("hidden_size")
    if (fields.count_or_none("word_embed_proj_dim") or hidden_size) != hidden_size:
        fields.refuse(
            ("word_embed_proj_dim",), "not hidden_size; token tables of another width have no formula here"
        )
    if not fields.flag("do_layer_norm_before", default=True):
        fields.refuse(("do_layer_norm_before",), "false; norms after each block have no formula here")
    return stated


def _mpt_has_no_positions(fields: Fields, stated: int) -> int:
    if not fields.flag("alibi", default=False) or not fields.flag("no_bias", default=False):
        fields.refuse(
            ("alibi", "no_bias"), "not true; learned positions and biases of this class have no formula here"
        )
    return fields.count("expansion_ratio") * fields.count("d_model")


_GPT2: Final = Family(
    types=("gpt2",),
    heads=Heads(bias="qkvo", kv_heads="all"),
    blocks=_PLAIN,
    norm_vectors=4,
    final_norm_vectors=2,
    position_offset=0,
    tied=True,
)

FAMILIES: Final = (
    _GPT2,
    replace(_GPT2, types=("gpt_bigcode",), heads=replace(_GPT2.heads, single_kv_head="multi_query")),
    Family(
        types=("opt",),
        heads=Heads(kv_heads="all", bias=Switch(flag="enable_bias", on="qkvo", off="none", default=True)),
        blocks=Blocks(gated=False, bias=True, dense_width=("ffn_dim",), dense_size=_opt_is_of_one_width),
        norm_vectors=4,
        final_norm_vectors=2,
        position_offset=2,
        tied=True,
        ignored=("_remove_final_layer_norm",),
    ),
    Family(
        types=("bloom",),
        heads=Heads(bias="qkvo", kv_heads="all"),
        blocks=_PLAIN,
        norm_vectors=4,
        # One more norm follows the token table.
        final_norm_vectors=4,
        tied=True,
        ignored=(
            "apply_residual_connection_post_layernorm",
            "skip_bias_add",
            "skip_bias_add_qkv",
            "masked_softmax_fusion",
        ),
    ),
    Family(
        types=("gptj",),
        heads=Heads(kv_heads="all"),
        blocks=_PLAIN,
        final_norm_vectors=2,
        head_bias=True,
    ),
    Family(
        types=("gpt_neox",),
        heads=Heads(kv_heads="all", bias=Switch(flag="attention_bias", on="qkvo", off="none", default=True)),
        blocks=_PLAIN,
        norm_vectors=4,
        final_norm_vectors=2,
        ignored=("use_parallel_residual",),
    ),
    Family(
        types=("falcon", "RefinedWeb", "RefinedWebModel"),
        heads=Heads(
            kv_heads="all", single_kv_head="multi_query", bias=Switch(flag="bias", on="qkvo", off="none")
        ),
        blocks=Blocks(
            gated=False,
            bias=Switch(flag="bias", on=True, off=False),
            dense_width=("ffn_hidden_size",),
            dense_ratio=4,
        ),
        norm_vectors=Switch(flag="new_decoder_architecture", on=4, off=2),
        final_norm_vectors=2,
        tied=True,
        ignored=("parallel_attn", "alibi", "num_ln_in_parallel_attn"),
    ),
    Family(
        types=("mpt",),
        heads=Heads(kv_heads="all", qk_norm=Switch(flag="qk_ln", on="full", off="none")),
        blocks=Blocks(gated=False, dense_width=("expansion_ratio",), dense_size=_mpt_has_no_positions),
        merged=("attn_config",),
        tied=True,
        ignored=(
            "learned_pos_emb",
            "attn_impl",
            "attn_type",
            "attn_uses_sequence_id",
            "norm_type",
            "embedding_fraction",
        ),
    ),
    Family(
        types=("phi",),
        heads=Heads(bias="qkvo", kv_heads="all"),
        blocks=_PLAIN,
        final_norm_vectors=2,
        head_bias=True,
        ignored=("attention_bias",),
    ),
    Family(
        types=("stablelm",),
        heads=Heads(
            kv_heads="all",
            bias=Switch(flag="use_qkv_bias", on="qkv", off="none"),
            qk_norm=Switch(flag="qk_layernorm", on="full", off="none"),
        ),
        norm_vectors=Switch(flag="use_parallel_residual", on=2, off=4),
        final_norm_vectors=2,
    ),
    Family(
        types=("starcoder2",),
        order=("sliding_window",),
        heads=Heads(kv_heads="all", bias=Switch(flag="use_bias", on="qkvo", off="none", default=True)),
        blocks=Blocks(gated=False, bias=Switch(flag="use_bias", on=True, off=False, default=True)),
        norm_vectors=4,
        final_norm_vectors=2,
        tied=True,
        ignored=("mlp_type", "norm_type"),
    ),
    Family(
        types=("nemotron",),
        heads=Heads(
            kv_heads="all",
            bias=Switch(flag="attention_bias", on="qkvo", off="none"),
            head_dim=128,
        ),
        blocks=Blocks(gated=False, bias=Switch(flag="mlp_bias", on=True, off=False)),
        norm_vectors=4,
        final_norm_vectors=2,
    ),
)
