"""What was asked, resolved: names to catalog entries, absent parameters to stated defaults."""

from dataclasses import dataclass, field
from datetime import date

from costsvc.db.entries import GpuEntry, Judgement, ModelEntry, StackEntry
from costsvc.db.judgements import Resolved
from costsvc.db.snapshot import Catalog
from costsvc.engine.layouts import Wanted
from costsvc.engine.sharing import SharingProfile
from costsvc.engine.specs import (
    Calibration,
    Deployment,
    DtypeSpec,
    ModelSpec,
    Objectives,
    Traffic,
    WeightPlan,
)
from costsvc.engine.units import MS_PER_S
from costsvc.errors import ContextTooLong
from costsvc.quoting.case import Case, case_of, judged
from costsvc.quoting.load import Load, load_of
from costsvc.quoting.request import QuoteRequest
from costsvc.quoting.speculation import acceptance_warnings, speculation_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A request with everything decided but the parallel layout."""

    request: QuoteRequest
    as_of: date
    case: Case
    load: Load
    objectives: Objectives
    objectives_were_asked: bool
    utilization_share: float
    base: Deployment
    wanted: Wanted
    assumptions: tuple[Judgement, ...]
    warnings: tuple[str, ...] = field(default=())

    @property
    def model(self) -> ModelEntry:
        """What runs."""
        return self.case.model

    @property
    def gpu(self) -> GpuEntry:
        """The accelerator that it runs on."""
        return self.case.gpu

    @property
    def stack(self) -> StackEntry:
        """The engine that serves it."""
        return self.case.stack

    @property
    def weights(self) -> WeightPlan:
        """How the weights are stored."""
        return self.case.weights

    @property
    def kv(self) -> DtypeSpec:
        """How the cache is stored."""
        return self.case.kv

    @property
    def resolved(self) -> Resolved:
        """The judgements of the case."""
        return self.case.resolved

    @property
    def traffic(self) -> Traffic:
        """What a mean request is."""
        return self.load.traffic

    @property
    def sharing(self) -> SharingProfile | None:
        """Where prompts were seen before; None where nothing says so."""
        return self.load.sharing


def resolve(catalog: Catalog, request: QuoteRequest, today: date) -> Scenario:
    """Decide all that a request leaves open and that does not need the engine.

    Raises
    ------
    NotInCatalog, Ambiguous
        A model, GPU, stack or dtype that the catalog does not hold.
    ContextTooLong, InvalidRequest, UnsupportedLayout
        What was asked contradicts the model's or the card's facts.
    """
    case = case_of(catalog, request.model, request.gpu, request.stack, request.weights, request.kv)
    assumed = _Assumed(catalog)
    load = load_of(catalog, request, assumed.value)
    _refuse_long_context(case.model, request, load.traffic)

    def calibrated(spec: ModelSpec, plan: WeightPlan) -> Calibration:
        """The judgements for another network on the same cards."""
        return judged(catalog, spec, case.gpu, case.stack, plan, case.kv).calibration

    objectives, asked = _objectives(request, assumed)
    utilization = request.utilization or assumed.value("utilization_share")
    return Scenario(
        request=request,
        as_of=request.as_of or today,
        case=case,
        load=load,
        objectives=objectives,
        objectives_were_asked=asked,
        utilization_share=utilization,
        base=Deployment(
            tp=1,
            pp=1,
            ep=1,
            dp=1,
            weights=case.weights,
            kv=case.kv,
            mode=request.mode,
            allocation=request.allocation,
            kv_cache=request.kv_cache,
            speculation=speculation_of(
                catalog, request, case.model, case.weights, load.traffic, assumed.value, calibrated
            ),
        ),
        wanted=Wanted(gpus=request.gpus, tp=request.tp, pp=request.pp, ep=request.ep, dp=request.dp),
        assumptions=tuple(assumed.used.values()),
        warnings=(*case.warnings, *acceptance_warnings(request)),
    )


class _Assumed:
    """Global judgements, remembered as they are used, so that the answer can echo them."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.used: dict[str, Judgement] = {}

    def value(self, name: str) -> float:
        judgement = self._catalog.judgements.everywhere(name)
        self.used[name] = judgement
        return judgement.value


def _refuse_long_context(model: ModelEntry, request: QuoteRequest, traffic: Traffic) -> None:
    longest = model.spec.max_context_tokens
    if traffic.context_limit_tokens > longest:
        of_profile = request.profile is not None
        what = "The longest request of the profile" if of_profile else "ctx"
        shorten = f"Give a profile of requests up to {longest}" if of_profile else f"Lower ctx to {longest}"
        raise ContextTooLong(
            f"{what} is {traffic.context_limit_tokens:,.0f} tokens, but {model.name} takes at most {longest:,}. "
            f"{shorten} or choose a model with a longer context (see /models).",
            field="profile" if of_profile else "ctx",
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
