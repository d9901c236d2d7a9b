"""What a quote rests on: published prices beside it, the band, assumptions and sources."""

from collections.abc import Iterable
from decimal import Decimal
from statistics import median

from costsvc.db.entries import ApiPrice, GpuEntry, Judgement, ModelEntry
from costsvc.db.prices import of_one_tier
from costsvc.db.snapshot import Catalog
from costsvc.engine.uncertainty import ErrorBand, MeasuredRegion, extrapolations
from costsvc.quoting.answer.plain import Plain, Section, number, number_exact
from costsvc.quoting.choice import Choice
from costsvc.quoting.gpu_price import GpuPrice
from costsvc.quoting.money import money
from costsvc.quoting.scenario import Scenario, architecture_of

LISTED_OFFERS = 20


def market_section(catalog: Catalog, scenario: Scenario) -> Section:
    """Published token prices of the same model that were observed up to the day."""
    published = catalog.api_prices(scenario.model.id, scenario.as_of)
    offers = [
        price
        for price in of_one_tier(published, scenario.traffic.context_limit_tokens)
        if price.input_usd_per_mtok is not None and price.output_usd_per_mtok is not None
    ]
    offers.sort(key=lambda price: (price.output_usd_per_mtok or Decimal(0), price.provider))
    listed: list[Plain] = [_api_price(price) for price in offers[:LISTED_OFFERS]]
    return {
        "published_prices": len(offers),
        "median_input_usd_per_mtok": _median(price.input_usd_per_mtok for price in offers),
        "median_cached_input_usd_per_mtok": _median(price.cached_input_usd_per_mtok for price in offers),
        "median_output_usd_per_mtok": _median(price.output_usd_per_mtok for price in offers),
        "cheapest": listed,
    }


def error_band(catalog: Catalog, scenario: Scenario) -> tuple[ErrorBand, Judgement]:
    """The band of the accelerator's generation, the stack and the architecture, and its judgement."""
    scope = {
        "gpu": scenario.gpu.id,
        "generation": scenario.gpu.spec.generation,
        "stack": scenario.stack.id,
        "architecture": architecture_of(scenario.model.spec),
    }
    low = catalog.judgements.find("band_low_ratio", scope)
    high = catalog.judgements.find("band_high_ratio", scope)
    return ErrorBand(low.value, high.value, low.points or 0), low


def uncertainty_section(catalog: Catalog, scenario: Scenario, choice: Choice) -> Section:
    """The band's ratios, the points behind it, and where the quote leaves the measured region."""
    band, judgement = error_band(catalog, scenario)
    generation = scenario.gpu.spec.generation
    scope = {"generation": generation}
    points = catalog.judgements.find("measured_points", scope)
    region = MeasuredRegion(
        points=int(points.value),
        longest_context_tokens=catalog.judgements.find("measured_context_tokens", scope).value,
        most_gpus=catalog.judgements.find("measured_gpus", scope).value,
    )
    reasons = extrapolations(
        region,
        generation=generation,
        context_tokens=scenario.traffic.context_limit_tokens,
        gpus=choice.deployment.gpus,
        cached_tokens=number_exact(choice.lengths.cached),
        speculates=choice.deployment.speculation is not None,
    )
    return {
        "low_ratio": number(band.low_ratio),
        "high_ratio": number(band.high_ratio),
        "points": band.points,
        "regime": " ".join(value for _, value in judgement.scope) or "all measured points",
        "kind": judgement.kind,
        "means": "10th and 90th percentile of the model's own error on measured points of the regime",
        "extrapolated": bool(reasons),
        "why_extrapolated": list(reasons),
    }


def assumptions_section(scenario: Scenario) -> list[Plain]:
    """Every judgement that the numbers rest on."""
    return [assumption_section(judgement) for judgement in (*scenario.assumptions, *scenario.resolved.used)]


def sources_section(catalog: Catalog, scenario: Scenario, price: GpuPrice) -> list[Plain]:
    """Where the facts were read: each source once, with what it covers here."""
    covers: dict[str, list[str]] = {}
    entries: list[tuple[str, ModelEntry | GpuEntry]] = [("model", scenario.model), ("gpu", scenario.gpu)]
    if scenario.request.draft_model is not None:
        entries.append(("draft_model", catalog.model(scenario.request.draft_model)))
    for prefix, entry in entries:
        for fact in entry.fact_sources:
            covers.setdefault(fact.source_id, []).append(f"{prefix}.{fact.field}")
    for judgement in (*scenario.assumptions, *scenario.resolved.used):
        covers.setdefault(judgement.source_id, []).append(f"assumption.{judgement.name}")
    for source_id in price.reference.source_ids if price.reference else ():
        covers.setdefault(source_id, []).append("gpu_price")
    if price.exchange is not None and price.exchange.source_id is not None:
        covers.setdefault(price.exchange.source_id, []).append("fx_rate")
    return [_source(catalog, source_id, fields) for source_id, fields in covers.items()]


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
