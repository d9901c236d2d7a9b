"""Speculative decoding of a request: who proposes tokens, how many, and how many of them are accepted."""

from collections.abc import Callable
from typing import TypeAlias

from costsvc.db.entries import ModelEntry
from costsvc.db.snapshot import Catalog
from costsvc.engine.parameters import parameter_count
from costsvc.engine.specs import Calibration, Draft, ModelSpec, Speculation, Traffic, WeightPlan
from costsvc.engine.speculation import mtp_module
from costsvc.errors import InvalidRequest, UnsupportedLayout
from costsvc.quoting.request import QuoteRequest

Calibrated: TypeAlias = Callable[[ModelSpec, WeightPlan], Calibration]

LARGEST_DRAFT_SHARE = 0.25
NAMED_DRAFTS = 6


def speculation_of(
    catalog: Catalog,
    request: QuoteRequest,
    model: ModelEntry,
    weights: WeightPlan,
    traffic: Traffic,
    assumed: Callable[[str], float],
    calibrated: Calibrated,
) -> Speculation | None:
    """What proposes tokens; None where nothing does.

    Raises
    ------
    NotInCatalog, Ambiguous
        No such draft model.
    InvalidRequest, UnsupportedLayout
        The draft cannot serve this model, or proposes more than is asked for.
    """
    proposer = request.speculation
    if proposer == "off":
        return None
    judged = proposer.replace("-", "_")
    tokens = request.draft_tokens or int(assumed(f"{judged}_draft_tokens"))
    if tokens >= traffic.output_tokens:
        raise InvalidRequest(
            f"draft_tokens is {tokens}, but a request has {traffic.output_tokens:g} output tokens: nothing is left "
            f"to propose. Lower draft_tokens or drop speculation.",
            field="draft_tokens",
        )
    draft = None
    if proposer == "draft-model":
        draft = _draft_model(catalog, request.draft_model or "", model, traffic, calibrated)
    elif proposer == "mtp":
        draft = _own_module(model, weights, calibrated)
    rate = request.acceptance_rate
    return Speculation(
        proposer=proposer,
        draft_tokens=tokens,
        acceptance_share=assumed(f"{judged}_acceptance_share") if rate is None else rate,
        draft=draft,
    )


def acceptance_warnings(request: QuoteRequest) -> list[str]:
    """What is to be known of an acceptance rate that nobody measured."""
    if request.speculation == "off" or request.acceptance_rate is not None:
        return []
    found = (
        "The acceptance rate of proposed tokens is an assumption; it depends on the task and the temperature. Give "
        "acceptance_rate as your engine logs it."
    )
    if request.speculation == "mtp" and (request.draft_tokens or 1) > 1:
        found += " That of mtp holds for the first token; a module used again is accepted less."
    return [found]


def draft_models(catalog: Catalog, model: ModelEntry, context_tokens: float) -> list[ModelEntry]:
    """Models that could draft for another: its vocabulary and window, at most a quarter as large.

    Those of the same maker come first, the smallest of them ahead.
    """
    maker = _maker(model)
    most = LARGEST_DRAFT_SHARE * parameter_count(model.spec)
    found = [
        one
        for one in catalog.models.values()
        if one.spec.vocab_size == model.spec.vocab_size
        and one.spec.max_context_tokens >= context_tokens
        and parameter_count(one.spec) <= most
    ]
    return sorted(found, key=lambda one: (_maker(one) != maker, parameter_count(one.spec), one.id))


def _maker(model: ModelEntry) -> str:
    return (model.hf_id or "").partition("/")[0]


def _draft_model(
    catalog: Catalog, name: str, model: ModelEntry, traffic: Traffic, calibrated: Calibrated
) -> Draft:
    context, draft = traffic.context_limit_tokens, catalog.model(name)
    if draft.spec.vocab_size != model.spec.vocab_size:
        raise UnsupportedLayout(
            f"draft_model {draft.name} has a vocabulary of {draft.spec.vocab_size:,}, {model.name} one of "
            f"{model.spec.vocab_size:,}: engines refuse the pair. "
            f"{_named(draft_models(catalog, model, context))}",
            field="draft_model",
        )
    if draft.spec.max_context_tokens < context:
        raise UnsupportedLayout(
            f"draft_model {draft.name} takes at most {draft.spec.max_context_tokens:,} tokens, but the "
            f"longest request is {context:,.0f}. Shorten it. {_named(draft_models(catalog, model, context))}",
            field="draft_model",
        )
    plan = catalog.weight_plan_spec(draft.released_weights)
    return Draft(model=draft.spec, weights=plan, calibration=calibrated(draft.spec, plan))


def _own_module(model: ModelEntry, weights: WeightPlan, calibrated: Calibrated) -> Draft:
    if not model.spec.mtp_parameters:
        raise UnsupportedLayout(
            f"speculation=mtp needs multi-token-prediction layers, and the catalog knows none of {model.name}. "
            f"Use speculation=draft-model or speculation=ngram.",
            field="speculation",
        )
    module = mtp_module(model.spec)
    return Draft(model=module, weights=weights, calibration=calibrated(module, weights), shares_tables=True)


def _named(drafts: list[ModelEntry]) -> str:
    if not drafts:
        return "The catalog has no smaller model with this vocabulary and window: use speculation=ngram."
    return f"Smaller models that could draft: {', '.join(one.id for one in drafts[:NAMED_DRAFTS])}."
