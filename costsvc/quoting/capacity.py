"""KV capacity as an engine logs it: one row of a table to bytes per token, tokens and concurrency."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from costsvc.db.entries import ModelEntry, StackEntry
from costsvc.db.snapshot import Catalog
from costsvc.engine.layouts import refuse_impossible
from costsvc.engine.memory import layer_cache_bytes, memory_budget
from costsvc.engine.replica import StageCut, compile_replica, held_layers, weight_bytes
from costsvc.engine.specs import Deployment, DtypeSpec
from costsvc.engine.units import GIB
from costsvc.errors import DoesNotFit, InvalidRequest
from costsvc.quoting.case import architecture_of
from costsvc.quoting.points import count_of, number_of, plain_dtype, plain_gpu, required_text, text_of
from costsvc.quoting.predict import stack_of

OFFLOAD = "offload"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What one GPU of the fullest stage holds."""

    model: ModelEntry
    stack: StackEntry
    deployment: Deployment
    layers: tuple[float, ...]
    weight_bytes: float
    in_flight_tokens: float

    def sequence_bytes(self, tokens: float) -> float:
        """Cache of one sequence. [B]"""
        total, tp = 0.0, float(self.deployment.tp)
        for count, group in zip(self.layers, self.model.spec.groups, strict=True):
            if group.attention is not None:
                held = layer_cache_bytes(
                    group.attention,
                    tokens,
                    group.attention.kv_share(tp),
                    self.deployment.kv.value_bytes,
                    self.stack.window_rule,
                    in_flight_tokens=self.in_flight_tokens,
                )
                total += count * (float(np.asarray(held)) + group.attention.state_bytes() / tp)
        return total


def capacity_point(catalog: Catalog, row: Mapping[str, str]) -> dict[str, object]:
    """Predict a row of the `capacity` schema.

    A given `kv_gib_per_gpu` is used in place of the budget model, and then neither the weights nor the
    context refuse the row. `kv_tokens` is memory over the bytes per token of a sequence of `max_model_len`
    (the model's longest where blank), which is a rate only where no layer is capped.

    Raises
    ------
    CostsvcError
        Why the row has no answer.
    """
    held = _held(catalog, row)
    longest = number_of(row, "max_model_len", least=1.0) or float(held.model.spec.max_context_tokens)
    given = number_of(row, "kv_gib_per_gpu")
    kv_bytes = _budget_bytes(catalog, row, held, longest) if given is None else given * GIB
    one = held.sequence_bytes(longest)
    return {
        "kv_bytes_per_token_per_gpu": held.sequence_bytes(longest) - held.sequence_bytes(longest - 1),
        "weights_gib_per_gpu": held.weight_bytes / GIB,
        "kv_gib_per_gpu": kv_bytes / GIB,
        "kv_tokens": int(kv_bytes / one * longest),
        "max_concurrency": kv_bytes / one,
    }


def _held(catalog: Catalog, row: Mapping[str, str]) -> _Held:
    model = catalog.model(required_text(row, "model"))
    stack = stack_of(catalog, text_of(row, "engine"), text_of(row, "version"))
    weights = catalog.weight_plan_spec(plain_dtype(text_of(row, "weight_dtype")) or model.released_weights)
    deployment = Deployment(
        tp=count_of(row, "tp") or 1,
        pp=count_of(row, "pp") or 1,
        ep=1,
        dp=1,
        weights=weights,
        kv=_kv(catalog, row),
    )
    refuse_impossible(model.spec, deployment)
    cut = StageCut(model.spec, deployment.pp)
    return _Held(
        model=model,
        stack=stack,
        deployment=deployment,
        layers=tuple(held_layers(model.spec, cut.fullest, stack.window_rule)),
        weight_bytes=float(weight_bytes(model.spec, [deployment], [cut])[0, 0]),
        in_flight_tokens=_admitted_tokens(catalog, stack),
    )


def _admitted_tokens(catalog: Catalog, stack: StackEntry) -> float:
    """Tokens of a prompt's step that engines with grouped layers count beside the window."""
    if stack.window_rule != "grouped":
        return 0.0
    return catalog.judgements.find("step_token_budget_tokens", {"stack": stack.id}).value


def _kv(catalog: Catalog, row: Mapping[str, str]) -> DtypeSpec:
    return catalog.dtype(plain_dtype(text_of(row, "kv_dtype")) or "bf16").spec


def _budget_bytes(catalog: Catalog, row: Mapping[str, str], held: _Held, longest: float) -> float:
    """What the budget model leaves for the cache; engines without chunks profile the longest prompt whole."""
    name = text_of(row, "gpu")
    if name is None:
        raise InvalidRequest(
            "gpu is blank and kv_gib_per_gpu too: give one of them, so that there is a memory to divide.",
            field="gpu",
        )
    if OFFLOAD in name.casefold():
        raise InvalidRequest(
            f"gpu is '{name}': how much of the weights lies in host memory is no field of this table. Give "
            f"kv_gib_per_gpu, or leave the offload out.",
            field="gpu",
        )
    gpu = catalog.gpu(plain_gpu(name))
    deployment = held.deployment
    resolved = catalog.judgements.calibration(
        gpu.spec, held.stack, architecture_of(held.model.spec), deployment.weights, deployment.kv
    )
    calibration = resolved.calibration
    share = number_of(row, "gpu_memory_utilization")
    if share is not None:
        calibration = replace(calibration, memory_utilization_share=share)
    whole = catalog.judgements.find("whole_prefill_tokens", {"stack": held.stack.id}).value
    if calibration.step_token_budget_tokens < longest <= whole:
        calibration = replace(calibration, step_token_budget_tokens=longest)
    replica = compile_replica(held.model.spec, gpu.spec, calibration, [deployment])
    kv_bytes = float(memory_budget(replica).kv_bytes[0, 0])
    if kv_bytes <= 0:
        raise DoesNotFit(
            f"{held.model.name} leaves no memory for a cache on {deployment.gpus} {gpu.name}: weights alone take "
            f"{held.weight_bytes / GIB:.1f} GiB of {gpu.spec.usable_memory_bytes / GIB:.1f} GiB each. "
            f"Raise tp or pp, or use a smaller weight dtype.",
            field="gpu",
        )
    return kv_bytes
