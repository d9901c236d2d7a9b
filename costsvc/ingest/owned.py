"""What an owned GPU costs an hour: its purchase over its years, its place in a hall, and its power."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from costsvc.db import entries
from costsvc.engine.units import HOURS_PER_MONTH, HOURS_PER_YEAR
from costsvc.ingest.entry import Day, Money, Slug, Strict, Text, mistake

YEARS = "owned_amortisation_years"
SERVER_RATIO = "owned_server_cost_ratio"
HOSTING = "owned_hosting_usd_per_kw_month"
JUDGED = (YEARS, SERVER_RATIO, HOSTING)

SMALLEST_USD = Decimal("0.0001")
WATTS_PER_KILOWATT = 1000


class Purchase(Strict):
    """What one GPU costs to buy, without server, network and hall."""

    gpu: Slug
    capex_usd: Money
    lowest_usd: Money | None = None
    highest_usd: Money | None = None
    day: Day
    precision: Literal["day", "month", "year"] = "day"
    source: Slug
    notes: Text | None = None


class Constant(Strict):
    """A figure of facilities, as printed."""

    name: Slug
    value: Money
    unit: Text
    day: Day
    precision: Literal["day", "month", "year"] = "day"
    source: Slug
    notes: Text | None = None


class OwnedFile(Strict):
    """`owned.yaml`. `priced_with` picks the facility constants that owned GPUs are priced with."""

    purchases: Annotated[list[Purchase], Field(min_length=1)]
    facility: Annotated[list[Constant], Field(min_length=1)]
    priced_with: dict[Literal["power_usd_per_kwh", "pue", "load_share_of_power"], Slug]

    @model_validator(mode="after")
    def every_picked_constant_is_there(self) -> Self:
        names = [one.name for one in self.facility]
        if missing := sorted(set(self.priced_with.values()) - set(names)):
            complaint = f"priced_with names no constant of facility: {', '.join(missing)}"
            raise mistake(complaint, "priced_with")
        if unpicked := sorted({"power_usd_per_kwh", "pue", "load_share_of_power"} - set(self.priced_with)):
            raise mistake(f"priced_with leaves out: {', '.join(unpicked)}", "priced_with")
        if len(names) > len(set(names)):
            raise mistake("A facility constant stands twice", "facility")
        return self

    def records(
        self, gpus: Mapping[str, entries.GpuEntry], judged: Mapping[str, float]
    ) -> tuple[entries.Offer, ...]:
        """The owned GPUs as offers of one provider, `owned`."""
        return tuple(self._record(one, gpus[one.gpu], judged) for one in self.purchases)

    def _record(self, one: Purchase, gpu: entries.GpuEntry, judged: Mapping[str, float]) -> entries.Offer:
        power_w = gpu.spec.power_w
        if power_w is None:
            raise ValueError(f"{one.gpu} has no power_w, so an owned one has no price")
        hours = Decimal(str(judged[YEARS])) * Decimal(HOURS_PER_YEAR)
        capital = one.capex_usd * Decimal(str(judged[SERVER_RATIO])) / hours
        kilowatts = Decimal(power_w) / WATTS_PER_KILOWATT
        hosting = kilowatts * Decimal(str(judged[HOSTING])) / Decimal(HOURS_PER_MONTH)
        power = kilowatts * self._picked("load_share_of_power") * self._picked("pue")
        power *= self._picked("power_usd_per_kwh")
        parts = {"capital": capital, "hosting": hosting, "power": power}
        shown = ", ".join(f"{name} {usd.quantize(SMALLEST_USD)}" for name, usd in parts.items())
        vague = "" if one.precision == "day" else f"; the source gives the {one.precision} only"
        return entries.Offer(
            id=f"owned/{one.gpu}",
            provider="owned",
            gpu_id=one.gpu,
            market="owned",
            prices=(
                entries.DatedPrice(
                    first_day=one.day,
                    usd_per_gpu_hour=sum(parts.values(), Decimal(0)).quantize(SMALLEST_USD),
                    source_id=one.source,
                ),
            ),
            basis="owned",
            notes=f"USD/h: {shown}; purchase {one.capex_usd} USD without server{vague}",
        )

    def _picked(self, role: Literal["power_usd_per_kwh", "pue", "load_share_of_power"]) -> Decimal:
        return next(one.value for one in self.facility if one.name == self.priced_with[role])
