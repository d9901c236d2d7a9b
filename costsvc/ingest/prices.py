"""Price files: what a provider asks for an hour of a GPU, day by day."""

import re
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from costsvc.db import entries
from costsvc.ingest.entry import Count, Day, Money, Slug, Strict, Text, mistake

Basis = Literal["whole-instance", "per-gpu", "gpu-component-only"]
RentalMarket = Literal["on-demand", "spot", "reserved-6m", "reserved-1y", "reserved-3y"]

SMALLEST_USD = Decimal("0.000000001")


class DatedPriceFields(Strict):
    """A price from its first day on, as printed: for the instance, or for one GPU of it."""

    first_day: Day
    usd_per_instance_hour: Money | None = None
    usd_per_gpu_hour: Money | None = None
    precision: Literal["day", "month", "year"] = "day"
    ended: Annotated[bool, Field(strict=True)] = False
    source: Slug

    @model_validator(mode="after")
    def prints_one_price(self) -> Self:
        printed = sum(price is not None for price in (self.usd_per_instance_hour, self.usd_per_gpu_hour))
        if printed != (0 if self.ended else 1):
            raise ValueError("State usd_per_instance_hour or usd_per_gpu_hour, or `ended: true` and neither")
        return self

    def usd_of_one_gpu(self, gpus: int) -> Decimal | None:
        """The printed price as one of one GPU. [USD/h]"""
        if self.usd_per_instance_hour is not None:
            return (self.usd_per_instance_hour / gpus).quantize(SMALLEST_USD).normalize() + Decimal(0)
        return self.usd_per_gpu_hour


def in_id(word: str) -> str:
    """A word as ids hold it: other characters than these leave a dash between those that stay."""
    return re.sub(r"[^a-z0-9._-]+", "-", word.casefold()).strip("-")


class OfferFields(Strict):
    """One rentable thing and its history. `excluded_reason` keeps it out of reference prices."""

    gpu: Slug
    instance_type: Text | None = None
    gpus_per_instance: Count = 1
    region: Text | None = None
    market: RentalMarket
    basis: Basis
    prices: Annotated[list[DatedPriceFields], Field(min_length=1)]
    excluded_reason: Text | None = None
    notes: Text | None = None

    @model_validator(mode="after")
    def days_follow_each_other(self) -> Self:
        days = [price.first_day for price in self.prices]
        if days != sorted(set(days)):
            raise mistake("The prices of an offer stand in order of their first day, each day once", "prices")
        return self

    @model_validator(mode="after")
    def a_component_has_no_vote(self) -> Self:
        """A GPU whose host is billed apart is no price of a GPU hour."""
        if self.basis == "gpu-component-only" and self.excluded_reason is None:
            raise mistake("A component-only offer states its excluded_reason", "basis")
        return self

    def words(self, provider: str) -> list[str]:
        """What tells an offer from others."""
        parts = (provider, self.gpu, self.instance_type, self.region, self.market)
        return [*(part for part in parts if part), f"{self.gpus_per_instance}x"]

    def slug(self, provider: str) -> str:
        """What the offer is called, before offers that look alike are told apart."""
        return "/".join(filter(None, map(in_id, self.words(provider))))

    def record(self, id: str, provider: str) -> entries.Offer:
        """The offer as stored, priced per GPU."""
        vague = [
            f"{price.first_day.isoformat()}: the source gives the {price.precision} only"
            for price in self.prices
            if price.precision != "day"
        ]
        notes = "; ".join([self.notes, *vague] if self.notes else vague)
        return entries.Offer(
            id=id,
            provider=provider,
            gpu_id=self.gpu,
            market=self.market,
            prices=tuple(
                entries.DatedPrice(
                    first_day=price.first_day,
                    usd_per_gpu_hour=price.usd_of_one_gpu(self.gpus_per_instance),
                    source_id=price.source,
                )
                for price in self.prices
            ),
            instance_type=self.instance_type,
            gpus_per_instance=self.gpus_per_instance,
            region=self.region,
            basis=self.basis,
            excluded_reason=self.excluded_reason,
            notes=notes or None,
        )


class OtherOfferFields(OfferFields):
    """An offer of a card without a datasheet in the catalog: reviewed and kept, but it prices nothing."""

    gpu: Text


class PriceFile(Strict):
    """`prices/<provider>.yaml`. `checked` is the last day somebody compared it with its sources."""

    provider: Slug
    checked: Day
    offers: list[OfferFields] = Field(default_factory=list)
    offers_of_other_gpus: list[OtherOfferFields] = Field(default_factory=list)

    @model_validator(mode="after")
    def no_price_is_from_the_future(self) -> Self:
        for offer in (*self.offers, *self.offers_of_other_gpus):
            if (newest := offer.prices[-1].first_day) > self.checked:
                raise mistake(f"A price of {newest.isoformat()} is newer than `checked`", "checked")
        return self

    def records(self, provider_name: str) -> tuple[entries.Offer, ...]:
        """The offers as stored. Offers that look alike are told apart by a number."""
        seen: dict[str, int] = {}
        found = []
        for offer in self.offers:
            slug = offer.slug(self.provider)
            seen[slug] = seen.get(slug, 0) + 1
            id = slug if seen[slug] == 1 else f"{slug}/{seen[slug]}"
            found.append(offer.record(id, provider_name))
        return tuple(found)
