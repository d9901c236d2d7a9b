"""What every configuration says beside its price: how sure it is, how soon it answers, and whose price its hour is."""

from costsvc.db.snapshot import Catalog
from costsvc.engine.units import MS_PER_S
from costsvc.quoting.answer import grounds
from costsvc.quoting.answer.plain import Section, number
from costsvc.quoting.evaluate import Evaluated
from costsvc.quoting.money import money


def price_section(catalog: Catalog, running: Evaluated) -> Section:
    """The blended price with the band of a quote, and the providers that vote on the hour (null: not a vote)."""
    band = grounds.error_band(catalog, running.scenario)
    low, high = band.of(running.usd_per_mtok)
    reference = running.price.reference
    return {
        "blended_usd_per_mtok": money(running.usd_per_mtok),
        "blended_low_usd_per_mtok": money(low),
        "blended_high_usd_per_mtok": money(high),
        "gpu_price_providers": None if reference is None else reference.providers,
        "gpu_price_basis": running.price.basis,
    }


def latency_section(running: Evaluated) -> Section:
    """Mean latencies."""
    loop = running.choice.state.loop
    return {"tpot_ms": number(loop.step_s * MS_PER_S), "ttft_ms": number(loop.ttft_s * MS_PER_S)}
