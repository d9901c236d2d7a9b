"""berth-placement: a roofline of decode from the card's measured constants."""

from typing import Any

from asking import answer
from berth.estimate import estimate
from berth.silicon import FLEET
from berth.workload import MODELS, WorkloadSpec, profile

_MODELS = {"llama-3.1-8b": "llama3-8b", "llama-3.1-70b": "llama3-70b"}


def _tpot_ms(point: dict[str, Any]) -> float:
    model = MODELS[_MODELS[point["model"]]]
    if point["weights"] == "fp8":
        model = model.quantized(1.0, 2.0, "fp8")
    work = WorkloadSpec(model, point["isl"], point["osl"], target_batch=point["concurrency"])
    told = estimate(profile(work), FLEET[point["gpu"]], 1.0)
    if not told.feasible or told.n_devices != point["tp"]:
        raise ValueError(f"another layout: {told.n_devices} devices, {told.reason}")
    return float(told.tpot_ms)


answer(_tpot_ms)
