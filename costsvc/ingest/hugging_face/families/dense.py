"""Dense decoders with one kind of layer."""

from typing import Final

from costsvc.ingest.hugging_face.family import Bias, Blocks, Family, Heads, Prediction, Switch

BIAS_BY_FLAG: Final[Switch[Bias]] = Switch(flag="attention_bias", on="qkvo", off="none")
MLP_BIAS: Final[Switch[bool]] = Switch(flag="mlp_bias", on=True, off=False)
_LLAMA_HEADS: Final = Heads(bias=BIAS_BY_FLAG, kv_heads="all")

FAMILIES: Final = (
    Family(
        types=("llama", "yi", "xverse", "baichuan", "granite", "exaone", "helium", "deepseek_llm"),
        heads=_LLAMA_HEADS,
        blocks=Blocks(bias=MLP_BIAS),
        defaults={
            "hidden_size": 4096,
            "intermediate_size": 11008,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "vocab_size": 32000,
            "max_position_embeddings": 2048,
        },
    ),
    Family(types=("minicpm",), heads=_LLAMA_HEADS, tied=True),
    Family(
        types=("internlm2",), heads=Heads(kv_heads="all", bias=Switch(flag="bias", on="qkvo", off="none"))
    ),
    Family(types=("internlm3",), heads=Heads(bias=Switch(flag="qkv_bias", on="qkv", off="none"))),
    Family(
        types=("smollm3",),
        order=("layer_types",),
        heads=_LLAMA_HEADS,
        blocks=Blocks(bias=MLP_BIAS),
        tied=True,
    ),
    Family(types=("arcee",), heads=_LLAMA_HEADS, blocks=Blocks(gated=False, bias=MLP_BIAS)),
    Family(
        types=("apertus",),
        heads=Heads(bias=BIAS_BY_FLAG, qk_norm="head"),
        blocks=Blocks(gated=False),
        # The activation of each block learns two parameters.
        further=lambda fields, sizes: 2 * sizes.layers,
    ),
    Family(
        types=("bitnet",),
        heads=_LLAMA_HEADS,
        tied=None,
        # A norm before each output projection: of attention and of the block.
        further=lambda fields, sizes: sizes.layers * (sizes.hidden_size + fields.count("intermediate_size")),
    ),
    Family(
        types=("seed_oss",),
        heads=Heads(bias=Switch(flag="attention_bias", on="qkv", off="none", default=True), head_dim=128),
        blocks=Blocks(bias=MLP_BIAS),
    ),
    Family(
        types=("qwen2", "qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text"),
        order=("layer_types", "use_sliding_window"),
        heads=Heads(bias="qkv"),
        ignored=("use_mrope",),
    ),
    Family(
        types=("mimo",),
        order=("use_sliding_window",),
        heads=Heads(bias="qkv"),
        mtp=Prediction(),
        ignored=("attention_bias", "use_mrope"),
    ),
    Family(
        types=("qwen",),
        heads=Heads(bias="qkv", kv_heads="all"),
        # The stated size is that of gate and up together.
        blocks=Blocks(dense_size=lambda fields, stated: stated // 2),
        ignored=("no_bias", "use_dynamic_ntk", "use_logn_attn", "use_flash_attn"),
    ),
    Family(
        types=("qwen3", "qwen3_vl_text"),
        order=("layer_types", "use_sliding_window"),
        heads=Heads(bias=BIAS_BY_FLAG, qk_norm="head", head_dim=128),
    ),
    Family(types=("olmo2",), heads=Heads(bias=BIAS_BY_FLAG, qk_norm="full", kv_heads="all")),
    Family(
        types=("glm",),
        heads=Heads(bias=Switch(flag="attention_bias", on="qkv", off="none", default=True), kv_heads=2),
    ),
    Family(
        types=("glm4",),
        heads=Heads(bias=Switch(flag="attention_bias", on="qkv", off="none", default=True), kv_heads=2),
        norm_vectors=4,
    ),
    Family(
        types=("chatglm",),
        heads=Heads(kv_heads="all", bias=Switch(flag="add_qkv_bias", on="qkv", off="none")),
        blocks=Blocks(
            dense_width=("ffn_hidden_size",), bias=Switch(flag="add_bias_linear", on=True, off=False)
        ),
        ignored=("multi_query_attention", "rmsnorm", "post_layer_norm", "interleaved_qkv"),
    ),
    Family(
        types=("hunyuan_v1_dense", "hunyuan"),
        heads=Heads(
            bias=BIAS_BY_FLAG,
            qk_norm=Switch(flag="use_qk_norm", on="head", off="none", default=True),
            kv_heads="all",
        ),
        blocks=Blocks(bias=MLP_BIAS),
        tied=None,
    ),
    Family(types=("ernie4_5",), heads=Heads(bias=Switch(flag="use_bias", on="qkvo", off="none")), tied=True),
    Family(types=("gemma",), heads=Heads(bias=BIAS_BY_FLAG, head_dim=256), tied=True),
    Family(
        types=("cohere",),
        heads=Heads(
            bias=BIAS_BY_FLAG, qk_norm=Switch(flag="use_qk_norm", on="full", off="none"), kv_heads="all"
        ),
        norm_vectors=1,
        tied=True,
    ),
)
