"""Offers of GPU hours, and their price on a day."""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import date
from itertools import islice

from pydantic import Field

from costsvc.db.entries import Market, Offer
from costsvc.db.prices import price_in_force
from costsvc.db.snapshot import Catalog
from costsvc.quoting.listing.common import SourceRow, as_printed, known, mentions, one_of, sources
from costsvc.quoting.listing.parts import Ordered, part
from costsvc.quoting.request import Text


class PriceFilter(Ordered):
    """Which offers of GPU hours."""

    gpu: Text | None = Field(None, description="Only this accelerator, by id or alias.")
    market: Market | None = Field(None, description="Only this market.")
    provider: Text | None = Field(None, description="Only this provider.")
    region: Text | None = Field(None, description="Only this region.")
    q: Text | None = Field(None, description="Only offers whose id, instance type or basis contains this.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """An offer of GPU hours and its price on the day; those `in_reference` vote in the reference price.

    `private` ones were negotiated by the owner of the key, whose quotes use them in place of the reference.
    """

    id: str
    provider: str
    gpu: str
    market: str
    region: str | None
    instance_type: str | None
    gpus_per_instance: int | None
    basis: str
    usd_per_gpu_hour: str
    since: date
    source_id: str
    in_reference: bool
    excluded_reason: str | None
    private: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedPriceRow:
    """A price and the first day it held; no price: the offer ended."""

    first_day: date
    usd_per_gpu_hour: str | None
    source_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceDetail:
    """An offer with every price it ever had."""

    id: str
    provider: str
    gpu: str
    market: str
    region: str | None
    instance_type: str | None
    gpus_per_instance: int | None
    basis: str
    usd_per_gpu_hour: str | None
    excluded_reason: str | None
    private: bool
    notes: str | None
    history: tuple[DatedPriceRow, ...]
    sources: tuple[SourceRow, ...]


def list_prices(catalog: Catalog, wanted: PriceFilter, today: date) -> list[PriceRow]:
    """Offers with a price in force on the day, by id."""
    gpu_id = None if wanted.gpu is None else catalog.gpu(wanted.gpu).id
    provider = one_of("provider", wanted.provider, catalog.providers, "/prices")
    region = None if wanted.region is None else _region(catalog, wanted.region)
    offers = catalog.content.offers if gpu_id is None else catalog.offers(gpu_id)
    begin = 0
    if wanted.after is not None and wanted.sort is None:
        # They may number a million, and a page late in the list must not make those before it.
        begin = bisect_right(offers, wanted.after, key=lambda offer: offer.id)
    rows = (
        row
        for offer in islice(offers, begin, None)
        if wanted.market in (None, offer.market)
        and provider in (None, offer.provider)
        and region in (None, offer.region)
        and mentions(wanted.q, (offer.id, offer.instance_type or "", offer.basis))
        and (row := _price_row(catalog, offer, wanted.as_of or today)) is not None
    )
    return part(rows, wanted, PriceRow)


def _region(catalog: Catalog, text: str) -> str | None:
    regions = (offer.region for offer in catalog.content.offers if offer.region)
    return one_of("region", text, regions, "/prices")


def show_price(catalog: Catalog, id: str, day: date) -> PriceDetail:
    """One offer with its history."""
    offer = find_offer(catalog, id)
    current = price_in_force(offer, day)
    return PriceDetail(
        id=offer.id,
        provider=offer.provider,
        gpu=offer.gpu_id,
        market=offer.market,
        region=offer.region,
        instance_type=offer.instance_type,
        gpus_per_instance=offer.gpus_per_instance,
        basis=offer.basis,
        usd_per_gpu_hour=known(current.usd_per_gpu_hour) if current else None,
        excluded_reason=offer.excluded_reason,
        private=catalog.is_private(offer),
        notes=offer.notes,
        history=tuple(
            DatedPriceRow(
                first_day=price.first_day,
                usd_per_gpu_hour=known(price.usd_per_gpu_hour),
                source_id=price.source_id,
            )
            for price in offer.prices
        ),
        sources=sources(catalog, (price.source_id for price in offer.prices)),
    )


def find_offer(catalog: Catalog, id: str) -> Offer:
    """An offer by id, or the nearest ids."""
    return catalog.find_offer(id)


def _price_row(catalog: Catalog, offer: Offer, day: date) -> PriceRow | None:
    price = price_in_force(offer, day)
    if price is None or price.usd_per_gpu_hour is None:
        return None
    return PriceRow(
        id=offer.id,
        provider=offer.provider,
        gpu=offer.gpu_id,
        market=offer.market,
        region=offer.region,
        instance_type=offer.instance_type,
        gpus_per_instance=offer.gpus_per_instance,
        basis=offer.basis,
        usd_per_gpu_hour=as_printed(price.usd_per_gpu_hour),
        since=price.first_day,
        source_id=price.source_id,
        in_reference=offer.excluded_reason is None and not catalog.is_private(offer),
        excluded_reason=offer.excluded_reason,
        private=catalog.is_private(offer),
    )
