"""What was asked, resolved: names to catalog entries, absent parameters to stated defaults."""

from dataclasses import dataclass, field
from datetime import date

from costsvc.db.entries import GpuEntry, Judgement, ModelEntry, StackEntry
from costsvc.db.judgements import Resolved
from costsvc.db.snapshot import Catalog
from costsvc.engine.layouts import Wanted
from costsvc.engine.operators import is_weight_only
from costsvc.engine.prefix import Tier
from costsvc.engine.sharing import SharingProfile, reuse_of
from costsvc.engine.specs import (
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
from costsvc.errors import ContextTooLong, InvalidRequest, UnsupportedLayout
from costsvc.quoting.request import QuoteRequest

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
    traffic: Traffic
    sharing: SharingProfile | None
    tiers: tuple[Tier, ...]
    objectives: Objectives
    objectives_were_asked: bool
    utilization_share: float
    base: Deployment
    wanted: Wanted
    assumptions: tuple[Judgement, ...]
    warnings: tuple[str, ...] = field(default=())


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
    traffic, sharing = _traffic(request, assumed)
    _refuse_long_context(model, traffic)
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
        traffic=traffic,
        sharing=sharing,
        tiers=(),
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
        ),
        wanted=Wanted(gpus=request.gpus, tp=request.tp, pp=request.pp, ep=request.ep, dp=request.dp),
        assumptions=tuple(assumed.used.values()),
        warnings=tuple(_warnings(model, gpu, weights)),
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


def _traffic(request: QuoteRequest, assumed: _Assumed) -> tuple[Traffic, SharingProfile | None]:
    if request.profile is not None:
        return _profile_traffic(request)
    context = request.ctx or 0
    output = request.output or _default_output(context, assumed)
    prompt = context - output
    sharing = _sharing(request, prompt, output, assumed)
    cached = (request.hit_rate or 0.0) * prompt
    return Traffic(
        uncached_input_tokens=prompt - cached,
        cached_input_tokens=cached,
        output_tokens=output,
        context_limit_tokens=context,
    ), sharing


def _profile_traffic(request: QuoteRequest) -> tuple[Traffic, SharingProfile | None]:
    profile = request.profile
    assert profile is not None  # noqa: S101 - the caller asked for it
    traffic = Traffic(
        uncached_input_tokens=profile.input_tokens,
        cached_input_tokens=0.0,
        output_tokens=profile.output_tokens,
        context_limit_tokens=profile.max_context_tokens or profile.input_tokens + profile.output_tokens,
        input_cv=profile.input_cv,
        output_cv=profile.output_cv,
    )
    if not profile.system_prompt_tokens and profile.turns == 1:
        return traffic, None
    return traffic, SharingProfile(
        system_tokens=profile.system_prompt_tokens,
        system_share=profile.system_prompt_share,
        turns=profile.turns,
        think_s=profile.think_s,
    )


def _default_output(context_tokens: int, assumed: _Assumed) -> int:
    usual = assumed.value("default_output_tokens")
    largest = assumed.value("default_output_share") * context_tokens
    return max(int(min(usual, largest)), 1)


def _sharing(
    request: QuoteRequest, prompt_tokens: float, output_tokens: float, assumed: _Assumed
) -> SharingProfile | None:
    if not request.prefix_tokens and request.turns is None:
        return None
    if request.prefix_tokens and request.prefix_tokens >= prompt_tokens:
        raise InvalidRequest(
            f"prefix_tokens is {request.prefix_tokens} but the whole prompt, ctx - output, has {prompt_tokens:g} "
            f"tokens. A request needs at least one token of its own: raise ctx or lower prefix_tokens.",
            field="prefix_tokens",
        )
    sharing = SharingProfile(
        system_tokens=float(request.prefix_tokens or 0),
        system_share=1.0 if request.prefix_share is None else request.prefix_share,
        turns=request.turns or 1.0,
        think_s=request.think_s or assumed.value("think_s"),
    )
    reuse_of(sharing, prompt_tokens, output_tokens)
    return sharing


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
