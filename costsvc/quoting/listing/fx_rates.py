"""What a US dollar is in other currencies, on a day."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from pydantic import Field

from costsvc.db.entries import FxRate
from costsvc.db.snapshot import Catalog
from costsvc.errors import NoRateInForce
from costsvc.quoting.exchange import HOLDS_DAYS
from costsvc.quoting.listing.common import SourceRow, as_printed, mentions, one_of, sources
from costsvc.quoting.listing.parts import Ordered, part
from costsvc.quoting.request import Text


class FxRateFilter(Ordered):
    """Which currencies."""

    q: Text | None = Field(None, description="Only currencies whose code contains this.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FxRateRow:
    """The reference rate of a currency, by its ISO 4217 code, on the day. [units of currency/USD]"""

    id: str
    units_per_usd: str
    since: date
    source_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedRateRow:
    """A rate and the first day it held. [units of currency/USD]"""

    first_day: date
    units_per_usd: str
    source_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FxRateDetail:
    """A currency with every rate it had, the newest first; without one in force on the day, none is shown."""

    id: str
    units_per_usd: str | None
    holds_days: int
    history: tuple[DatedRateRow, ...]
    sources: tuple[SourceRow, ...]


def list_fx_rates(catalog: Catalog, wanted: FxRateFilter, today: date) -> list[FxRateRow]:
    """Rates in force on the day, by currency."""
    return part(_rates(catalog, wanted.q, wanted.as_of or today), wanted, FxRateRow)


def show_fx_rate(catalog: Catalog, currency: str, day: date) -> FxRateDetail:
    """One currency, by its code."""
    code = one_of("currency", currency, catalog.currencies, "/fx-rates")
    history = [rate for rate in catalog.content.fx_rates if rate.currency == code]
    history.sort(key=lambda rate: rate.first_day, reverse=True)
    current = _in_force(catalog, history[0].currency, day)
    return FxRateDetail(
        id=history[0].currency,
        units_per_usd=as_printed(current.units_per_usd) if current else None,
        holds_days=_holds_days(catalog),
        history=tuple(
            DatedRateRow(
                first_day=rate.first_day,
                units_per_usd=as_printed(rate.units_per_usd),
                source_id=rate.source_id,
            )
            for rate in history
        ),
        sources=sources(catalog, (rate.source_id for rate in history)),
    )


def _rates(catalog: Catalog, text: str | None, day: date) -> Iterator[FxRateRow]:
    for currency in catalog.currencies:
        rate = _in_force(catalog, currency, day) if mentions(text, (currency,)) else None
        if rate is not None:
            yield FxRateRow(
                id=currency,
                units_per_usd=as_printed(rate.units_per_usd),
                since=rate.first_day,
                source_id=rate.source_id,
            )


def _in_force(catalog: Catalog, currency: str, day: date) -> FxRate | None:
    with suppress(NoRateInForce):
        return catalog.fx_rate(currency, day, holds_days=_holds_days(catalog))
    return None


def _holds_days(catalog: Catalog) -> int:
    return int(catalog.judgements.value(HOLDS_DAYS))
