"""GenZ: a roofline of each operator of a decode step, in the middle of the output, without efficiencies of its own."""

from typing import Any

from asking import answer
from GenZ import decode_moddeling

_MODELS = {
    "llama-3.1-8b": "meta-llama/Meta-Llama-3.1-8B",
    "llama-3.1-70b": "meta-llama/Llama-3.1-70B",
}
_GPUS = {"h100-sxm": "H100_GPU"}


def _tpot_ms(point: dict[str, Any]) -> float:
    told = decode_moddeling(
        model=_MODELS[point["model"]],
        batch_size=point["concurrency"],
        input_tokens=point["isl"],
        output_tokens=point["osl"] // 2,
        Bb=1,
        system_name=_GPUS[point["gpu"]],
        bits="fp8" if point["weights"] == "fp8" else "bf16",
        tensor_parallel=point["tp"],
        parallelism_heirarchy=f"TP{{{point['tp']}}}_EP{{1}}_PP{{1}}",
    )
    return float(told["Latency"])


answer(_tpot_ms)
