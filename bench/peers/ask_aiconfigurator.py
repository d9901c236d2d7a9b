"""NVIDIA aiconfigurator: measured kernels, mixed steps, of the stack that served the point."""

import logging
from typing import Any

from aiconfigurator.cli.api import cli_estimate
from asking import answer

logging.disable(logging.CRITICAL)
_MODELS = {
    "llama-3.1-8b": "meta-llama/Meta-Llama-3.1-8B",
    "llama-3.1-70b": "meta-llama/Meta-Llama-3.1-70B",
}
_GPUS = {
    "h100-sxm": "h100_sxm",
    "h200": "h200_sxm",
    "h200-sxm": "h200_sxm",
    "b200": "b200_sxm",
    "b200-sxm": "b200_sxm",
}


def _tpot_ms(point: dict[str, Any]) -> float:
    told = cli_estimate(
        _MODELS[point["model"]],
        _GPUS[point["gpu"]],
        backend_name=point["engine"],
        isl=point["isl"],
        osl=point["osl"],
        batch_size=point["concurrency"],
        tp_size=point["tp"],
        gemm_quant_mode="fp8" if point["weights"] == "fp8" else "bfloat16",
    )
    return float(told.tpot)


answer(_tpot_ms)
