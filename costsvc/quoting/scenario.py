"""What was asked, resolved: names to catalog entries, absent parameters to stated defaults."""

from dataclasses import dataclass, field
from datetime import date

from costsvc.db.entries import GpuEntry, Judgement, ModelEntry, StackEntry
from costsvc.db.judgements import Resolved
from costsvc.db.snapshot import Catalog
from costsvc.engine.layouts import Wanted
from costsvc.engine.operators import is_weight_only
from costsvc.engine.sharing import SharingProfile
from costsvc.engine.specs import (
    Calibration,
    Deployment,
    DtypeSpec,
    GpuSpec,
    ModelSpec,
    MoeFfn,
    Objectives,
    Traffic,
    WeightPlan,
)
from costsvc.engine.units import MS_PER_S
from costsvc.errors import ContextTooLong, UnsupportedLayout
from costsvc.quoting.load import Load, load_of
from costsvc.quoting.request import QuoteRequest
from costsvc.quoting.speculation import acceptance_warnings, speculation_of

DEFAULT_STACK = "generic"
SIXTEEN_BIT = ("bf16", "fp16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A request with everything decided but the parallel layout."""

    request: QuoteRequest
    as_of: date
    model: ModelEntry
    gpu: GpuEntry
    stack: StackEntry
    weights: WeightPlan
    kv: DtypeSpec
    resolved: Resolved
    load: Load
    objectives: Objectives
    objectives_were_asked: bool
    utilization_share: float
    base: Deployment
    wanted: Wanted
    assumptions: tuple[Judgement, ...]
    warnings: tuple[str, ...] = field(default=())

    @property
    def traffic(self) -> Traffic:
        """What a mean request is."""
        return self.load.traffic

    @property
    def sharing(self) -> SharingProfile | None:
        """Where prompts were seen before; None where nothing says so."""
        return self.load.sharing


def architecture_of(model: ModelSpec) -> str:
    """`moe` where any layer routes, else `dense`: a scope of judgements."""
    return "moe" if any(isinstance(group.ffn, MoeFfn) for group in model.groups) else "dense"


def resolve(catalog: Catalog, request: QuoteRequest, today: date) -> Scenario:
    """Decide all that a request leaves open and that does not need the engine.

    Raises
    ------
    NotInCatalog, Ambiguous
        A model, GPU, stack or dtype that the catalog does not hold.
    ContextTooLong, InvalidRequest, UnsupportedLayout
        What was asked contradicts the model's or the card's facts.
    """
    model, gpu = catalog.model(request.model), catalog.gpu(request.gpu)
    stack = catalog.stack(request.stack or DEFAULT_STACK)
    weights = catalog.weight_plan_spec(request.weights or model.released_weights)
    kv = catalog.dtype(request.kv or _sixteen_bit(gpu.spec)).spec
    refuse_without_kernel(gpu, stack, weights)
    refuse_without_judgement(catalog, weights, kv)
    assumed = _Assumed(catalog)
    load = load_of(catalog, request, assumed.value)
    _refuse_long_context(model, load.traffic)

    def calibrated(spec: ModelSpec, plan: WeightPlan) -> Calibration:
        """The judgements for another network on the same cards."""
        refuse_without_kernel(gpu, stack, plan)
        refuse_without_judgement(catalog, plan, kv)
        return catalog.judgements.calibration(gpu.spec, stack, architecture_of(spec), plan, kv).calibration

    objectives, asked = _objectives(request, assumed)
    utilization = request.utilization or assumed.value("utilization_share")
    return Scenario(
        request=request,
        as_of=request.as_of or today,
        model=model,
        gpu=gpu,
        stack=stack,
        weights=weights,
        kv=kv,
        resolved=catalog.judgements.calibration(gpu.spec, stack, architecture_of(model.spec), weights, kv),
        load=load,
        objectives=objectives,
        objectives_were_asked=asked,
        utilization_share=utilization,
        base=Deployment(
            tp=1,
            pp=1,
            ep=1,
            dp=1,
            weights=weights,
            kv=kv,
            mode=request.mode,
            allocation=request.allocation,
            kv_cache=request.kv_cache,
            speculation=speculation_of(
                catalog, request, model, weights, load.traffic, assumed.value, calibrated
            ),
        ),
        wanted=Wanted(gpus=request.gpus, tp=request.tp, pp=request.pp, ep=request.ep, dp=request.dp),
        assumptions=tuple(assumed.used.values()),
        warnings=(*_warnings(model, gpu, weights), *acceptance_warnings(request)),
    )


class _Assumed:
    """Global judgements, remembered as they are used, so that the answer can echo them."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.used: dict[str, Judgement] = {}

    def value(self, name: str) -> float:
        judgement = self._catalog.judgements.find(name, {})
        self.used[name] = judgement
        return judgement.value


def _sixteen_bit(gpu: GpuSpec) -> str:
    return next((rate for rate in SIXTEEN_BIT if rate in gpu.dense_flops_per_s), SIXTEEN_BIT[0])


def refuse_without_kernel(gpu: GpuEntry, stack: StackEntry, weights: WeightPlan) -> None:
    """Raise UnsupportedLayout where the card or the stack cannot compute with a dtype of the plan."""
    for dtype in {weights.attention, weights.ffn, weights.experts, weights.embedding, weights.other}:
        missing = gpu.spec.arithmetic_of(dtype) is None
        if missing or (dtype.id, gpu.spec.generation) in stack.without_kernel:
            rates = ", ".join(sorted(gpu.spec.dense_flops_per_s))
            raise UnsupportedLayout(
                f"{stack.name} has no kernel for {dtype.id} weights on {gpu.name} ({gpu.spec.generation}), whose "
                f"matrix units compute {rates}. Choose another weights dtype or another GPU.",
                field="weights",
            )


def refuse_without_judgement(catalog: Catalog, weights: WeightPlan, kv: DtypeSpec) -> None:
    """Raise UnsupportedLayout where nobody has said how fast a dtype is."""
    stored = {weights.attention, weights.ffn, weights.experts, weights.embedding, weights.other}
    wanted = (("weights", "gemm_mfu_share", stored), ("kv", "attention_decode_mbu_share", {kv}))
    for parameter, judgement, dtypes in wanted:
        known = catalog.judgements.dtypes_of(judgement)
        unknown = sorted(dtype.id for dtype in dtypes if dtype.id not in known)
        if unknown:
            raise UnsupportedLayout(
                f"{parameter} is stored as {', '.join(unknown)}, but the calibration has no {judgement} for it. "
                f"Choose one of {', '.join(known)}, or add the judgement.",
                field=parameter,
            )


def _warnings(model: ModelEntry, gpu: GpuEntry, weights: WeightPlan) -> list[str]:
    stored = {weights.attention, weights.ffn, weights.experts}
    widened = sorted(dtype.id for dtype in stored if is_weight_only(gpu.spec, dtype))
    found = []
    if widened:
        found.append(
            f"{gpu.name} computes {', '.join(widened)} weights in 16 bit: they save memory and bandwidth, not "
            f"arithmetic."
        )
    if gpu.spec_check != "verified":
        fields = f" ({', '.join(gpu.fields_not_confirmed)})" if gpu.fields_not_confirmed else ""
        found.append(f"The facts of {gpu.name} are {gpu.spec_check}{fields}; check them before a decision.")
    if model.parameter_difference_reason:
        found.append(f"Parameter count of {model.name}: {model.parameter_difference_reason}")
    return found


def _refuse_long_context(model: ModelEntry, traffic: Traffic) -> None:
    longest = model.spec.max_context_tokens
    if traffic.context_limit_tokens > longest:
        raise ContextTooLong(
            f"ctx is {traffic.context_limit_tokens:,.0f} tokens, but {model.name} takes at most {longest:,}. "
            f"Lower ctx to {longest} or choose a model with a longer context (see /models).",
            field="ctx",
            details={"asked_tokens": traffic.context_limit_tokens, "longest_tokens": longest},
        )


def _objectives(request: QuoteRequest, assumed: _Assumed) -> tuple[Objectives, bool]:
    """Objectives in seconds, and whether any of them was asked for rather than assumed."""
    tpot = None if request.tpot_ms is None else request.tpot_ms / MS_PER_S
    ttft = None if request.ttft_ms is None else request.ttft_ms / MS_PER_S
    if tpot is None and request.slo != "batch":
        tpot = assumed.value(f"{request.slo}_tpot_s")
    if ttft is None and request.slo == "strict":
        ttft = assumed.value("strict_ttft_s")
    asked = bool({"tpot_ms", "ttft_ms", "slo"} & request.model_fields_set)
    return Objectives(tpot_s=tpot, ttft_s=ttft), asked
