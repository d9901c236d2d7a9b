"""What a quote rests on: published prices beside it, the band, assumptions and sources."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import inf
from statistics import median

from costsvc.db.entries import ApiPrice, GpuEntry, Judgement, ModelEntry
from costsvc.db.prices import of_one_tier, prompts_of_tiers
from costsvc.db.snapshot import Catalog
from costsvc.engine.uncertainty import ErrorBand, MeasuredRegion, extrapolations
from costsvc.quoting.answer.plain import (
    LastingList,
    LastingSection,
    Plain,
    Section,
    number,
    number_exact,
)
from costsvc.quoting.case import Case, architecture_of
from costsvc.quoting.choice import Choice
from costsvc.quoting.gpu_price import GpuPrice
from costsvc.quoting.kept import once_per_catalog
from costsvc.quoting.money import money
from costsvc.quoting.scenario import Scenario

LISTED_OFFERS = 20


def market_section(catalog: Catalog, scenario: Scenario) -> Section:
    """Published token prices of the same model that were observed up to the day."""
    model, day = scenario.model.id, scenario.as_of
    ends = _tier_ends(catalog, model, day)
    reached = bisect_left(ends, scenario.traffic.input_tokens)
    return _market_of(catalog, model, day, ends[reached] if reached < len(ends) else inf)


@once_per_catalog
def _tier_ends(catalog: Catalog, model_id: str, day: date) -> tuple[int, ...]:
    """Prompts at which sellers' tiers end, rising: between two of them every price is the same. [token]"""
    return tuple(sorted(prompts_of_tiers(catalog.api_prices(model_id, day))))


@once_per_catalog
def _market_of(catalog: Catalog, model_id: str, day: date, prompt_tokens: float) -> Section:
    offers = [
        price
        for price in of_one_tier(catalog.api_prices(model_id, day), prompt_tokens)
        if price.input_usd_per_mtok is not None and price.output_usd_per_mtok is not None
    ]
    offers.sort(key=lambda price: (price.output_usd_per_mtok or Decimal(0), price.provider))
    listed: list[Plain] = [_api_price(price) for price in offers[:LISTED_OFFERS]]
    return LastingSection(
        published_prices=len(offers),
        median_input_usd_per_mtok=_median(price.input_usd_per_mtok for price in offers),
        median_cached_input_usd_per_mtok=_median(price.cached_input_usd_per_mtok for price in offers),
        median_output_usd_per_mtok=_median(price.output_usd_per_mtok for price in offers),
        cheapest=listed,
    )


@dataclass(frozen=True, slots=True)
class _Measured:
    """What was measured of cases like one: its error, the judgement that says so, and where the points lie."""

    band: ErrorBand
    judgement: Judgement
    region: MeasuredRegion


@once_per_catalog
def _measured(catalog: Catalog, case: Case) -> _Measured:
    find, generation = catalog.judgements.find, case.gpu.spec.generation
    scope = {
        "gpu": case.gpu.id,
        "generation": generation,
        "stack": case.stack.id,
        "architecture": architecture_of(case.model.spec),
    }
    low, of_generation = find("band_low_ratio", scope), {"generation": generation}
    return _Measured(
        band=ErrorBand(low.value, find("band_high_ratio", scope).value, low.points or 0),
        judgement=low,
        region=MeasuredRegion(
            points=int(find("measured_points", of_generation).value),
            longest_context_tokens=find("measured_context_tokens", of_generation).value,
            most_gpus=find("measured_gpus", of_generation).value,
        ),
    )


def error_band(catalog: Catalog, scenario: Scenario) -> ErrorBand:
    """The band of the accelerator's generation, the stack and the architecture."""
    return _measured(catalog, scenario.case).band


def uncertainty_section(catalog: Catalog, scenario: Scenario, choice: Choice) -> Section:
    """The band's ratios, the points behind it, and where the quote leaves the measured region."""
    measured = _measured(catalog, scenario.case)
    reasons = extrapolations(
        measured.region,
        generation=scenario.gpu.spec.generation,
        context_tokens=scenario.traffic.context_limit_tokens,
        gpus=choice.deployment.gpus,
        cached_tokens=number_exact(choice.lengths.cached),
        speculates=choice.deployment.speculation is not None,
    )
    return _uncertainty(catalog, scenario.case, reasons)


@once_per_catalog
def _uncertainty(catalog: Catalog, case: Case, reasons: tuple[str, ...]) -> Section:
    measured = _measured(catalog, case)
    band, judgement = measured.band, measured.judgement
    return LastingSection(
        low_ratio=number(band.low_ratio),
        high_ratio=number(band.high_ratio),
        points=band.points,
        regime=" ".join(value for _, value in judgement.scope) or "all measured points",
        kind=judgement.kind,
        means="10th and 90th percentile of the model's own error on measured points of the regime",
        extrapolated=bool(reasons),
        why_extrapolated=list(reasons),
    )


def assumptions_section(catalog: Catalog, scenario: Scenario) -> list[Plain]:
    """Every judgement that the numbers rest on."""
    return _assumptions(catalog, scenario.case, _assumed(scenario))


@once_per_catalog
def _assumptions(catalog: Catalog, case: Case, assumed: tuple[str, ...]) -> list[Plain]:
    return LastingList(map(assumption_section, _judgements(catalog, case, assumed)))


def _assumed(scenario: Scenario) -> tuple[str, ...]:
    """Names of the assumptions, which hold everywhere: quicker to compare than all that is said of them."""
    return tuple([judgement.name for judgement in scenario.assumptions])


def _judgements(catalog: Catalog, case: Case, assumed: Iterable[str]) -> Iterator[Judgement]:
    yield from (catalog.judgements.find(name, {}) for name in assumed)
    yield from case.resolved.used


def sources_section(catalog: Catalog, scenario: Scenario, price: GpuPrice) -> list[Plain]:
    """Where the facts were read: each source once, with what it covers here."""
    return _sources(
        catalog,
        scenario.case,
        scenario.request.draft_model,
        _assumed(scenario),
        price.reference.source_ids if price.reference else (),
        price.exchange.source_id if price.exchange else None,
    )


@once_per_catalog
def _sources(
    catalog: Catalog,
    case: Case,
    draft_model: str | None,
    assumed: tuple[str, ...],
    of_gpu_price: tuple[str, ...],
    of_fx_rate: str | None,
) -> list[Plain]:
    covers: dict[str, list[str]] = {}
    entries: list[tuple[str, ModelEntry | GpuEntry]] = [("model", case.model), ("gpu", case.gpu)]
    if draft_model is not None:
        entries.append(("draft_model", catalog.model(draft_model)))
    for prefix, entry in entries:
        for fact in entry.fact_sources:
            covers.setdefault(fact.source_id, []).append(f"{prefix}.{fact.field}")
    for judgement in _judgements(catalog, case, assumed):
        covers.setdefault(judgement.source_id, []).append(f"assumption.{judgement.name}")
    for source_id in of_gpu_price:
        covers.setdefault(source_id, []).append("gpu_price")
    if of_fx_rate is not None:
        covers.setdefault(of_fx_rate, []).append("fx_rate")
    return LastingList(_source(catalog, source_id, fields) for source_id, fields in covers.items())


def _source(catalog: Catalog, source_id: str, fields: list[str]) -> Section:
    source = catalog.source(source_id)
    return {
        "id": source.id,
        "title": source.title,
        "kind": source.kind,
        "url": source.url,
        "locator": source.locator,
        "accessed": source.accessed.isoformat() if source.accessed else None,
        "covers": list(dict.fromkeys(fields)),
    }


def assumption_section(judgement: Judgement) -> Section:
    """One judgement, as answers print it."""
    scope: Section = dict(judgement.scope)
    return {
        "name": judgement.name,
        "value": judgement.value,
        "unit": judgement.unit,
        "kind": judgement.kind,
        "dated": judgement.dated.isoformat(),
        "scope": scope,
        "points": judgement.points,
        "scatter_ratio": judgement.scatter_ratio,
        "reason": judgement.reason,
        "source": judgement.source_id,
    }


def _api_price(price: ApiPrice) -> Section:
    return {
        "provider": price.provider,
        "provider_model_id": price.provider_model_id,
        "input_usd_per_mtok": _money(price.input_usd_per_mtok),
        "cached_input_usd_per_mtok": _money(price.cached_input_usd_per_mtok),
        "output_usd_per_mtok": _money(price.output_usd_per_mtok),
        "context_limit_tokens": price.context_limit_tokens,
        "observed": price.observed.isoformat() if price.observed else None,
        "source": price.source_id,
    }


def _money(amount: Decimal | None) -> str | None:
    return None if amount is None else money(amount)


def _median(amounts: Iterable[Decimal | None]) -> str | None:
    known = [amount for amount in amounts if amount is not None]
    return money(median(known)) if known else None
