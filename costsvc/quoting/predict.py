"""What a deployment measures: one row of a table of benchmark points to its predicted rates."""

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast, get_args

import numpy as np

from costsvc.db.entries import GpuEntry, ModelEntry, StackEntry
from costsvc.db.snapshot import Catalog
from costsvc.engine.layouts import refuse_impossible
from costsvc.engine.loads import LoadMode, Offered, Served, serve
from costsvc.engine.memory import memory_budget, sequence_bytes
from costsvc.engine.parameters import parameter_count
from costsvc.engine.replica import Replica
from costsvc.engine.search import Array
from costsvc.engine.serving import BOUNDS, GIVEN, lengths_of
from costsvc.engine.specs import Deployment, DtypeSpec, MoeFfn, Traffic, WeightPlan
from costsvc.engine.uncertainty import MeasuredRegion, extrapolations
from costsvc.engine.units import GIGA, MS_PER_S
from costsvc.errors import DoesNotFit, InvalidRequest, NotInCatalog
from costsvc.quoting.case import DEFAULT_STACK, SIXTEEN_BIT, architecture_of, refuse_without_kernel
from costsvc.quoting.compiled import one_layout
from costsvc.quoting.points import (
    count_of,
    number_of,
    plain_dtype,
    required_number,
    required_text,
    text_of,
)

SIXTEEN_BIT_BYTES = 2
SMALLEST = 1e-9
_RELEASE = re.compile(r"\s*~?v?(\d+\.\d+)")
_DAY = re.compile(r"\d{4}(-\d{2}){0,2}(?!\d)")
_VLLM_0_7 = "2025-01-27"
_VENDOR_SPELLINGS = frozenset({"trtllm", "tensorrt-llm", "trt-llm"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A row, resolved. `offered` is what one of `replicas` gets, which are all alike."""

    model: ModelEntry
    gpu: GpuEntry
    stack: StackEntry
    deployment: Deployment
    traffic: Traffic
    offered: Offered
    replicas: int = 1


def predict_point(catalog: Catalog, row: Mapping[str, str]) -> dict[str, object]:
    """Predict a row of the `predict` or of the disaggregated schema.

    Raises
    ------
    CostsvcError
        Why the row cannot be predicted.
    """
    point = point_of(catalog, row)
    served = serve_point(catalog, point)
    low_ratio, high_ratio = _band(catalog, point)
    rate = point.replicas * float(served.output_tokens_per_s[0, 0])
    return {
        "output_tok_s": rate,
        "output_tok_s_low": rate / high_ratio,
        "output_tok_s_high": rate / low_ratio,
        "ttft_ms": _ttft_ms(point.offered, served),
        "tpot_ms": float(served.tpot_s[0, 0]) * MS_PER_S,
        "concurrency": point.replicas * float(served.sequences[0, 0]),
        "bound": BOUNDS[int(served.bound[0, 0])],
        "extrapolated": _is_extrapolated(catalog, point),
    }


def _ttft_ms(offered: Offered, served: Served) -> float | None:
    """The mean; None of a flood, and of arrivals that a bound keeps up, whose queue grows as long as they come."""
    ttft_s, is_arriving = (
        float(served.ttft_s[0, 0]),
        offered.mode == "server" and np.isfinite(offered.rps).all(),
    )
    grows = is_arriving and served.bound[0, 0] != GIVEN and not np.isfinite(offered.concurrency).any()
    return ttft_s * MS_PER_S if math.isfinite(ttft_s) and not grows else None


def point_of(catalog: Catalog, row: Mapping[str, str]) -> Point:
    """Resolve a row of either schema."""
    return disaggregated_point(catalog, row) if "decode_tp_size" in row else read_point(catalog, row)


def serve_point(catalog: Catalog, point: Point) -> Served:
    """Run a resolved point.

    Raises
    ------
    DoesNotFit
        Not even one sequence fits.
    """
    replica = replica_of(catalog, point)
    served = serve(replica, lengths_of(point.traffic), point.offered)
    if np.isnan(served.sequences).any():
        budget = memory_budget(replica)
        one = float(np.ravel(sequence_bytes(replica, point.traffic.context_limit_tokens))[0])
        raise DoesNotFit(
            f"{point.model.name} needs {float(budget.weight_bytes[0, 0]) / GIGA:.1f} GB of weights and "
            f"{one / GIGA:.1f} GB for one sequence on each of {point.deployment.gpus} {point.gpu.name}, which "
            f"shows {float(budget.usable_bytes[0, 0]) / GIGA:.1f} GB. Use more GPUs or a smaller dtype.",
            field="n_gpus",
        )
    return served


def replica_of(catalog: Catalog, point: Point) -> Replica:
    """The layout of a point with the calibration that holds for it."""
    plan, kv = point.deployment.weights, point.deployment.kv
    architecture = architecture_of(point.model.spec)
    resolved = catalog.judgements.calibration(point.gpu.spec, point.stack, architecture, plan, kv)
    return one_layout(point.model.spec, point.gpu.spec, resolved.calibration, point.deployment)


def read_point(catalog: Catalog, row: Mapping[str, str]) -> Point:
    """Resolve a row of the `predict` schema; blanks are defaults."""
    model, gpu = catalog.model(required_text(row, "model")), catalog.gpu(required_text(row, "gpu"))
    stack = stack_of(catalog, text_of(row, "engine"), text_of(row, "engine_version") or _release_by_date(row))
    weights = catalog.weight_plan_spec(plain_dtype(text_of(row, "weight_dtype")) or model.released_weights)
    refuse_without_kernel(gpu, stack, weights)
    tp, pp, dp, ep = parallelism(row, model)
    kv = cache_dtype(catalog, row, gpu, stack, weights)
    layout = Deployment(tp=tp, pp=pp, ep=ep, dp=dp, weights=weights, kv=kv)
    copies = _copies(row, model, gpu, layout)
    deployment = replace(layout, dp=dp // copies)
    refuse_impossible(model.spec, deployment)
    prompt, output = required_number(row, "isl"), required_number(row, "osl")
    concurrency = number_of(row, "concurrency", least=SMALLEST)
    busy = copies if concurrency is None else max(min(copies, math.floor(concurrency)), 1)
    return Point(
        model=model,
        gpu=gpu,
        stack=stack,
        deployment=deployment,
        traffic=_traffic(prompt, output, number_of(row, "cached_tokens") or 0.0),
        offered=_offered(row, concurrency, busy),
        replicas=busy,
    )


def disaggregated_point(catalog: Catalog, row: Mapping[str, str]) -> Point:
    """Resolve a row with separate prefill and decode workers: its decode workers' layout, both pools' time."""
    model, gpu = catalog.model(required_text(row, "model_path")), catalog.gpu(required_text(row, "system"))
    stack = stack_of(catalog, text_of(row, "backend"), text_of(row, "backend_version"))
    weights = catalog.weight_plan_spec(text_of(row, "precision") or model.released_weights)
    refuse_without_kernel(gpu, stack, weights)
    workers = count_of(row, "decode_num_workers") or 1
    tp, pp, dp = _pool_ranks(row, "decode", model)
    deployment = Deployment(
        tp=tp,
        pp=pp,
        dp=dp,
        ep=_dividing(count_of(row, "decode_moe_ep_size") or 1, tp * dp),
        weights=weights,
        kv=cache_dtype(catalog, row, gpu, stack, weights),
        mode="disaggregated",
    )
    refuse_impossible(model.spec, deployment)
    concurrency = number_of(row, "concurrency")
    prefill_workers = count_of(row, "prefill_num_workers")
    prefill_gpus = (prefill_workers or 0) * math.prod(_pool_ranks(row, "prefill", model))
    return Point(
        model=model,
        gpu=gpu,
        stack=stack,
        deployment=deployment,
        traffic=_traffic(required_number(row, "isl"), required_number(row, "osl"), 0.0),
        offered=offered_load(
            "continuous",
            None if concurrency is None else concurrency / workers,
            prefill_ratio=prefill_gpus / (workers * deployment.gpus) if prefill_workers else None,
        ),
        replicas=workers,
    )


def _pool_ranks(row: Mapping[str, str], pool: str, model: ModelEntry) -> tuple[int, int, int]:
    """tp, pp and attention dp of a pool's worker; tp that heads cannot be split over are dp ranks."""
    tp, pp = count_of(row, f"{pool}_tp_size") or 1, count_of(row, f"{pool}_pp_size") or 1
    dp = count_of(row, f"{pool}_attention_dp_size") or 1
    groups = model.spec.groups
    heads = [getattr(group.attention, "query_heads", tp) for group in groups if group.attention]
    routed = any(isinstance(group.ffn, MoeFfn) for group in groups)
    return (1, pp, tp * dp) if routed and any(head % tp for head in heads) else (tp, pp, dp)


def stack_of(catalog: Catalog, engine: str | None, version: str | None = None) -> StackEntry:
    """The stack of a table's engine, of its version where the catalog knows that apart ("vllm 0.6").

    What the catalog does not hold counts as the generic one.
    """
    release = _RELEASE.match(version or "")
    spellings = [f"{engine} {release.group(1)}"] if engine and release else []
    for spelling in (*spellings, engine or DEFAULT_STACK):
        with suppress(NotInCatalog):
            return catalog.stack(spelling)
    return catalog.stack(DEFAULT_STACK)


def _release_by_date(row: Mapping[str, str]) -> str | None:
    """The newest release that a run of a day can have had, where its table does not name one.

    vLLM 0.7.0 is of 2025-01-27; a day is ISO 8601 and may be a year or a month. Other spellings tell nothing.
    """
    day = _DAY.match(text_of(row, "date") or "")
    return "0.6" if day and day.group() < _VLLM_0_7[: len(day.group())] else None


def cache_dtype(
    catalog: Catalog, row: Mapping[str, str], gpu: GpuEntry, stack: StackEntry, weights: WeightPlan
) -> DtypeSpec:
    """The cache's dtype; where blank, what the stack keeps beside such weights, else 16 bit."""
    asked = text_of(row, "kv_dtype")
    if asked is not None:
        return catalog.dtype(asked).spec
    if stack.kv_beside_quantised and weights.attention.value_bytes < SIXTEEN_BIT_BYTES:
        return catalog.dtype(stack.kv_beside_quantised).spec
    wide = next((rate for rate in SIXTEEN_BIT if rate in gpu.spec.dense_flops_per_s), SIXTEEN_BIT[0])
    return catalog.dtype(wide).spec


def parallelism(row: Mapping[str, str], model: ModelEntry) -> tuple[int, int, int, int]:
    """tp, pp, dp and ep of a row.

    Without tp all GPUs that pp and dp leave are tensor-parallel. Some tables count attention
    data-parallel ranks inside tp: then tp x pp x dp exceeds the GPUs, and tp is what is left.

    Raises
    ------
    InvalidRequest
        The numbers contradict one another.
    """
    pp, dp = count_of(row, "pp") or 1, count_of(row, "dp") or 1
    tp = count_of(row, "tp")
    gpus = count_of(row, "n_gpus") or (tp or 1) * pp * dp
    if tp is None or tp * pp * dp > gpus:
        tp = max(gpus // (pp * dp), 1)
    if tp * pp * dp < gpus and gpus % (tp * pp) == 0:
        dp = gpus // (tp * pp)
    if tp * pp * dp != gpus:
        raise InvalidRequest(
            f"n_gpus is {gpus}, but tp x pp x dp is {tp} x {pp} x {dp}. Give numbers that agree, or leave tp blank.",
            field="n_gpus",
        )
    if not any(isinstance(group.ffn, MoeFfn) for group in model.spec.groups):
        return tp, pp, dp, 1
    if dp == 1 and _floods_with_attention_dp(row):
        return 1, pp, tp, tp
    return tp, pp, dp, _dividing(count_of(row, "ep") or 1, tp * dp)


def _copies(row: Mapping[str, str], model: ModelEntry, gpu: GpuEntry, layout: Deployment) -> int:
    """How many copies of the model stand behind a balancer: one to a data-parallel rank, or one of all ranks.

    Ranks are of attention alone, and share the experts, where the table says over how many ranks those are spread
    or counts the ranks inside tp, where the engine has no other (TensorRT-LLM), and where no rank could hold the model.
    """
    routed = any(isinstance(group.ffn, MoeFfn) for group in model.spec.groups)
    if layout.dp == 1 or not routed:
        return layout.dp
    shared = (
        layout.ep > 1
        or text_of(row, "ep") is not None
        or (count_of(row, "tp") or layout.tp) > layout.tp
        or (text_of(row, "engine") or "").casefold() in _VENDOR_SPELLINGS
        or parameter_count(model.spec) * layout.weights.experts.value_bytes
        > gpu.spec.memory_bytes * layout.tp * layout.pp
    )
    return 1 if shared else layout.dp


def _floods_with_attention_dp(row: Mapping[str, str]) -> bool:
    """Whether a table's `tp` of a MoE model means attention data-parallel ranks.

    NVIDIA measures maximum throughput of MoE models on TensorRT-LLM 1.0 and newer with attention
    data-parallelism on and lists the ranks as tp (its performance overview, from release 1.0 on).
    """
    release = _RELEASE.match(text_of(row, "engine_version") or "")
    stated = text_of(row, "ep") or text_of(row, "dp") or text_of(row, "concurrency")
    flood = text_of(row, "mode") == "offline-maxthroughput" and not stated
    vendor = (text_of(row, "engine") or "").casefold() in _VENDOR_SPELLINGS
    return flood and vendor and release is not None and float(release.group(1)) >= 1.0


def _dividing(wanted: int, ranks: int) -> int:
    """The expert parallelism itself where it divides the ranks, else all of them."""
    return wanted if ranks % wanted == 0 else ranks


def _traffic(prompt: float, output: float, cached: float) -> Traffic:
    if cached >= prompt:
        raise InvalidRequest(
            f"cached_tokens is {cached:g} of a prompt of {prompt:g}; at least one token is always computed.",
            field="cached_tokens",
        )
    return Traffic(
        uncached_input_tokens=prompt - cached,
        cached_input_tokens=cached,
        output_tokens=output,
        context_limit_tokens=prompt + output,
    )


def offered_load(
    mode: str,
    concurrency: float | None = None,
    rps: float | None = None,
    max_batch: float | None = None,
    prefill_ratio: float | None = None,
) -> Offered:
    """One load as the engine takes it; None is without limit."""

    def cell(value: float | None) -> Array:
        return np.asarray([[math.inf if value is None else value]])

    return Offered(
        mode=cast(LoadMode, mode),
        concurrency=cell(concurrency),
        rps=cell(rps),
        max_batch=cell(max_batch),
        prefill_ratio=cell(prefill_ratio),
    )


def _offered(row: Mapping[str, str], concurrency: float | None, copies: int) -> Offered:
    """What each of so many copies gets."""
    rps = number_of(row, "rps", least=SMALLEST)
    mode = text_of(row, "mode") or "continuous"
    if mode not in get_args(LoadMode):
        raise InvalidRequest(f"mode is '{mode}'; it is one of {', '.join(get_args(LoadMode))}.", field="mode")
    return offered_load(
        mode,
        concurrency=None if concurrency is None else concurrency / copies,
        rps=None if rps is None else rps / copies,
        max_batch=number_of(row, "max_batch", least=1.0),
    )


def _scope(point: Point) -> dict[str, str]:
    return {
        "gpu": point.gpu.id,
        "generation": point.gpu.spec.generation,
        "stack": point.stack.id,
        "architecture": architecture_of(point.model.spec),
    }


def _band(catalog: Catalog, point: Point) -> tuple[float, float]:
    scope = _scope(point)
    return (
        catalog.judgements.find("band_low_ratio", scope).value,
        catalog.judgements.find("band_high_ratio", scope).value,
    )


def _is_extrapolated(catalog: Catalog, point: Point) -> bool:
    generation = point.gpu.spec.generation
    region = measured_region(catalog, generation)
    reasons = extrapolations(
        region,
        generation=generation,
        context_tokens=point.traffic.context_limit_tokens,
        gpus=point.deployment.gpus,
        cached_tokens=point.traffic.cached_input_tokens,
    )
    return bool(reasons)


def measured_region(catalog: Catalog, generation: str) -> MeasuredRegion:
    """Where an accelerator generation has measured points."""
    scope = {"generation": generation}
    return MeasuredRegion(
        points=int(catalog.judgements.find("measured_points", scope).value),
        longest_context_tokens=catalog.judgements.find("measured_context_tokens", scope).value,
        most_gpus=catalog.judgements.find("measured_gpus", scope).value,
    )
