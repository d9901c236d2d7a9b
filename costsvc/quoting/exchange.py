"""At which rate a quote is shown in another currency: the caller's, or the catalog's of the day."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from costsvc.db.snapshot import Catalog
from costsvc.quoting.answer.plain import Section
from costsvc.quoting.listing.common import as_printed
from costsvc.quoting.request import QuoteRequest

USD: Final = "USD"
HOLDS_DAYS: Final = "fx_rate_holds_days"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A rate. `first_day` and `source_id` are None where the caller gave it. [units of currency/USD]"""

    currency: str
    units_per_usd: Decimal
    first_day: date | None = None
    source_id: str | None = None


def exchange_of(catalog: Catalog, request: QuoteRequest, day: date) -> Exchange | None:
    """The rate of a request; None where it asks for US dollars.

    Raises
    ------
    NoRateInForce
        The catalog has no rate of the currency on the day, and the request gives none.
    """
    if request.currency == USD:
        return None
    if request.fx_rate is not None:
        return Exchange(currency=request.currency, units_per_usd=request.fx_rate)
    rate = catalog.fx_rate(request.currency, day, holds_days=int(catalog.judgements.value(HOLDS_DAYS)))
    return Exchange(
        currency=rate.currency,
        units_per_usd=rate.units_per_usd,
        first_day=rate.first_day,
        source_id=rate.source_id,
    )


def exchange_section(exchange: Exchange) -> Section:
    """The rate as an answer prints it: exact, with its day and its source."""
    return {
        "basis": "given in the request" if exchange.source_id is None else "reference rate of the catalog",
        "units_per_usd": as_printed(exchange.units_per_usd),
        "first_day": exchange.first_day.isoformat() if exchange.first_day else None,
        "source": exchange.source_id,
    }
