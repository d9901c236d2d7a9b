"""What an hour of the GPU costs in this quote, and on what that rests."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from costsvc.db.prices import ReferencePrice
from costsvc.db.snapshot import Catalog
from costsvc.engine.units import GIGA, HOURS_PER_MONTH, SECONDS_PER_HOUR
from costsvc.quoting.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPrice:
    """Price of one accelerator-hour. `reference` is None where the user gave the price. [USD/h]

    `tiers_usd_per_gpu_hour` is the rent of the memory and drives that keep prefixes beside it.
    """

    usd_per_gpu_hour: Decimal
    basis: str
    reference: ReferencePrice | None
    tiers_usd_per_gpu_hour: float = 0.0

    @property
    def usd_per_gpu_second(self) -> float:
        """What a second costs, the memory beside the GPU included. [USD/s]"""
        return (float(self.usd_per_gpu_hour) + self.tiers_usd_per_gpu_hour) / SECONDS_PER_HOUR


UNIT_PRICE: Final = GpuPrice(usd_per_gpu_hour=Decimal(1), basis="", reference=None)
"""For work that is priced later."""


def price_of(catalog: Catalog, scenario: Scenario) -> GpuPrice:
    """The user's price, one provider's median, or the reference price.

    Raises
    ------
    NoPriceInForce
        No offer of that kind counts on the day.
    """
    request = scenario.request
    tiers = _tiers_usd_per_hour(catalog, scenario)
    if request.price_usd_per_gpu_hour is not None:
        return GpuPrice(
            usd_per_gpu_hour=request.price_usd_per_gpu_hour,
            basis="given in the request",
            reference=None,
            tiers_usd_per_gpu_hour=tiers,
        )
    reference = catalog.reference_price(
        scenario.gpu.id, scenario.as_of, request.market, request.provider, request.region
    )
    who = (
        f"median of {reference.provider}'s offers"
        if reference.provider
        else f"median of {reference.providers} providers' medians"
    )
    return GpuPrice(
        usd_per_gpu_hour=reference.usd_per_gpu_hour,
        basis=f"{who}, {request.market}, observed {reference.first_observed} to {reference.last_observed}",
        reference=reference,
        tiers_usd_per_gpu_hour=tiers,
    )


def _tiers_usd_per_hour(catalog: Catalog, scenario: Scenario) -> float:
    value = catalog.judgements.value
    monthly_usd = sum(
        tier.capacity_bytes / GIGA * value(f"{tier.name}_usd_per_gb_month") for tier in scenario.load.tiers
    )
    return monthly_usd / HOURS_PER_MONTH
