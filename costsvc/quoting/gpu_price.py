"""What an hour of the GPU costs in this quote, and on what that rests."""

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Final

from costsvc.db.prices import ReferencePrice
from costsvc.db.snapshot import Catalog
from costsvc.engine.units import GIGA, HOURS_PER_MONTH, SECONDS_PER_HOUR
from costsvc.errors import InvalidRequest
from costsvc.quoting.exchange import Exchange, exchange_of
from costsvc.quoting.kept import Itself
from costsvc.quoting.request import QuoteRequest
from costsvc.quoting.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPrice:
    """Price of one accelerator-hour. `reference` is None where the user gave the price. [USD/h]

    `tiers_usd_per_gpu_hour` is the rent of the memory and drives that keep prefixes beside it; `exchange` is
    the rate at which amounts are shown in another currency too.
    """

    usd_per_gpu_hour: Decimal
    basis: str
    reference: ReferencePrice | None
    tiers_usd_per_gpu_hour: float = 0.0
    exchange: Exchange | None = None

    @property
    def usd_per_gpu_second(self) -> float:
        """What a second costs, the memory beside the GPU included. [USD/s]"""
        return (float(self.usd_per_gpu_hour) + self.tiers_usd_per_gpu_hour) / SECONDS_PER_HOUR


# Catalogs keep the prices that are asked for again and again, so the words for each are found once.
_KEPT_REFERENCES: Final = 1024

UNIT_PRICE: Final = GpuPrice(usd_per_gpu_hour=Decimal(1), basis="", reference=None)
"""For work that is priced later."""


def price_of(catalog: Catalog, scenario: Scenario) -> GpuPrice:
    """The user's price, one provider's median, or the reference price.

    Raises
    ------
    NoPriceInForce, NoRateInForce
        No offer of that kind counts on the day; the currency has no rate then.
    """
    request = scenario.request
    _refuse_other_private_revision(catalog, request.private_revision)
    tiers = _tiers_usd_per_hour(catalog, scenario)
    exchange = exchange_of(catalog, request, scenario.as_of)
    priced = _own_price(request) or _reference_price(catalog, scenario)
    if not tiers and exchange is None:
        return priced
    return replace(priced, tiers_usd_per_gpu_hour=tiers, exchange=exchange)


def _own_price(request: QuoteRequest) -> GpuPrice | None:
    own = request.price_usd_per_gpu_hour
    return (
        None if own is None else GpuPrice(usd_per_gpu_hour=own, basis="given in the request", reference=None)
    )


def _reference_price(catalog: Catalog, scenario: Scenario) -> GpuPrice:
    request = scenario.request
    return _priced(
        Itself(
            catalog.reference_price(
                scenario.gpu.id, scenario.as_of, request.market, request.provider, request.region
            )
        )
    )


@lru_cache(maxsize=_KEPT_REFERENCES)
def _priced(price: Itself[ReferencePrice]) -> GpuPrice:
    """A reference price and the words for it."""
    reference = price.fact
    who = (
        f"median of {reference.provider}'s offers"
        if reference.provider
        else f"median of {reference.providers} providers' medians"
        if reference.providers > 1
        else "median of one provider's offers"
    )
    if reference.negotiated:
        who = f"negotiated by the key's owner: {who}"
    since = "in force since" if reference.negotiated else "observed"
    return GpuPrice(
        usd_per_gpu_hour=reference.usd_per_gpu_hour,
        basis=f"{who}, {reference.market}, {since} {reference.first_observed} to {reference.last_observed}",
        reference=reference,
    )


def _refuse_other_private_revision(catalog: Catalog, asked: int | None) -> None:
    """A price of another state than the one that was asked for would be wrong without a word."""
    if asked not in (None, catalog.private_revision):
        there = (
            "this catalog is what everybody sees"
            if catalog.private is None
            else f"this answer is from private revision {catalog.private_revision}"
        )
        raise InvalidRequest(
            f"private_revision is {asked}, but {there}. Leave it away, or ask GET /quote for this quote alone, "
            "with the key of its owner.",
            field="private_revision",
        )


def _tiers_usd_per_hour(catalog: Catalog, scenario: Scenario) -> float:
    value = catalog.judgements.value
    monthly_usd = sum(
        tier.capacity_bytes / GIGA * value(f"{tier.name}_usd_per_gb_month") for tier in scenario.load.tiers
    )
    return monthly_usd / HOURS_PER_MONTH
