"""What an hour of the GPU costs in this quote, and on what that rests."""

from dataclasses import dataclass
from decimal import Decimal

from costsvc.db.prices import ReferencePrice
from costsvc.db.snapshot import Catalog
from costsvc.quoting.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPrice:
    """Price of one accelerator-hour. `reference` is None where the user gave the price. [USD/h]"""

    usd_per_gpu_hour: Decimal
    basis: str
    reference: ReferencePrice | None


def price_of(catalog: Catalog, scenario: Scenario) -> GpuPrice:
    """The user's price, one provider's median, or the reference price.

    Raises
    ------
    NoPriceInForce
        No offer of that kind counts on the day.
    """
    request = scenario.request
    if request.price_usd_per_gpu_hour is not None:
        return GpuPrice(
            usd_per_gpu_hour=request.price_usd_per_gpu_hour, basis="given in the request", reference=None
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
    )
