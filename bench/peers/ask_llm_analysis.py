"""llm-analysis: a roofline of a layer. Its feed-forward has two matrices; Llama's three are given as wider ones."""

import logging
from typing import Any

from asking import answer
from llm_analysis.analysis import LLMAnalysis
from llm_analysis.config import (
    ModelConfig,
    ParallelismConfig,
    get_dtype_config_by_name,
    get_gpu_config_by_name,
)

logging.disable(logging.CRITICAL)
_SHAPES = {"llama-3.1-8b": (32, 32, 4096, 14_336), "llama-3.1-70b": (80, 64, 8192, 28_672)}
_GPUS = {"h100-sxm": "h100-sxm-80gb"}


def _tpot_ms(point: dict[str, Any]) -> float:
    layers, heads, hidden, ffn = _SHAPES[point["model"]]
    model = ModelConfig(
        name=point["model"],
        num_layers=layers,
        n_head=heads,
        hidden_dim=hidden,
        vocab_size=128_256,
        max_seq_len=131_072,
        num_key_value_heads=8,
        ffn_embed_dim=ffn * 3 // 2,
        expansion_ratio=ffn * 3 / 2 / hidden,
        model_type="llama",
    )
    tp = point["tp"]
    dtype = get_dtype_config_by_name("w8a8e16" if point["weights"] == "fp8" else "w16a16e16")
    analysis = LLMAnalysis(
        model, get_gpu_config_by_name(_GPUS[point["gpu"]]), dtype, ParallelismConfig(tp_size=tp, sp_size=tp)
    )
    told = analysis.inference(
        batch_size_per_gpu=point["concurrency"],
        seq_len=point["isl"],
        num_tokens_to_generate=point["osl"],
        kv_cache_dtype_bytes=2,
    )
    return float(told["total_decode_latency"] / point["osl"]) * 1e3


answer(_tpot_ms)
