"""Cost and prices, with their bands."""

from functools import lru_cache
from typing import Final

from costsvc.db.prices import ReferencePrice
from costsvc.engine.uncertainty import ErrorBand
from costsvc.engine.units import SECONDS_PER_HOUR, TOKENS_PER_MTOK
from costsvc.quoting.answer.plain import LastingSection, Section, number, number_exact
from costsvc.quoting.bill import Bill
from costsvc.quoting.choice import Choice
from costsvc.quoting.exchange import USD, exchange_section
from costsvc.quoting.gpu_price import GpuPrice
from costsvc.quoting.kept import Itself
from costsvc.quoting.money import money
from costsvc.quoting.scenario import Scenario

# Catalogs keep the prices that are asked for again and again, so each is written once.
_KEPT_REFERENCES: Final = 1024


def cost_section(scenario: Scenario, choice: Choice, price: GpuPrice, bill: Bill) -> Section:
    """What one request and one replica cost, and how idle capacity and margin enter."""
    gpus = choice.deployment.gpus
    section: Section = {
        "request_usd": money(bill.request_usd),
        "saturated_request_usd": money(bill.request_gpu_s * bill.gpu_second_usd),
        "load_multiplier": number(bill.load_multiplier),
        "utilization": number(scenario.utilization_share),
        "margin": number(scenario.request.margin),
        "replica_usd_per_hour": money(gpus * bill.gpu_second_usd * SECONDS_PER_HOUR),
        "request_gpu_seconds": number(bill.request_gpu_s),
        "gpu_price": gpu_price_section(price),
        "cache_tiers_usd_per_gpu_hour": money(price.tiers_usd_per_gpu_hour),
    }
    if bill.fleet is not None:
        replicas = bill.fleet.replicas + bill.fleet.prefill_replicas
        section["fleet"] = {
            "replicas": bill.fleet.replicas,
            "prefill_replicas": bill.fleet.prefill_replicas,
            "gpus": replicas * gpus,
            "usd_per_hour": money(replicas * gpus * bill.gpu_second_usd * SECONDS_PER_HOUR),
            "idle_share": number(bill.fleet.idle_share),
        }
    return section


def gpu_price_section(price: GpuPrice) -> Section:
    """The price of one GPU-hour and what it rests on."""
    if price.reference is None:
        return {"usd_per_gpu_hour": money(price.usd_per_gpu_hour), "basis": price.basis}
    return _reference_section(Itself(price.reference), price.basis)


@lru_cache(maxsize=_KEPT_REFERENCES)
def _reference_section(price: Itself[ReferencePrice], basis: str) -> Section:
    reference = price.fact
    negotiated: Section = {"negotiated": True} if reference.negotiated else {}
    section: Section = {
        "usd_per_gpu_hour": money(reference.usd_per_gpu_hour),
        "basis": basis,
        **negotiated,
        "market": reference.market,
        "offers": reference.offers,
        "providers": reference.providers,
        "lowest_usd_per_gpu_hour": money(reference.lowest_usd_per_gpu_hour),
        "highest_usd_per_gpu_hour": money(reference.highest_usd_per_gpu_hour),
        "first_observed": reference.first_observed.isoformat(),
        "last_observed": reference.last_observed.isoformat(),
        "votes": [
            {
                "provider": vote.provider,
                "usd_per_gpu_hour": money(vote.usd_per_gpu_hour),
                "offers": vote.offers,
            }
            for vote in reference.votes
        ],
    }
    return LastingSection(section)


def prices_section(scenario: Scenario, choice: Choice, bill: Bill, band: ErrorBand) -> Section:
    """One price per token class, and the blend at the request's own mix."""
    lengths, request = choice.lengths, scenario.request
    uncached, cached, output = (
        number_exact(part) for part in (lengths.uncached, lengths.cached, lengths.output)
    )
    per_mtok = bill.factor * TOKENS_PER_MTOK
    blended = bill.request_usd / (uncached + cached + output) * TOKENS_PER_MTOK
    values = {
        "input": bill.tokens.uncached * per_mtok,
        "cached_input": bill.tokens.cached * per_mtok,
        "output": bill.tokens.output * per_mtok,
        "blended": blended,
    }
    section: Section = {
        "attribution": request.attribution,
        "currency": USD if bill.exchange is None else bill.exchange.currency,
        "unit": "per 1,000,000 tokens",
    }
    for name, value in values.items():
        section[name] = _price(value, band)
    if bill.exchange is not None:
        section["exchange"] = exchange_section(bill.exchange)
    section["conservation_residual_share"] = number(bill.tokens.residual_share)
    return section


def _price(usd_per_mtok: float, band: ErrorBand) -> Section:
    low, high = band.of(usd_per_mtok)
    return {"usd_per_mtok": money(usd_per_mtok), "low": money(low), "high": money(high)}
