"""Which rate of a currency holds on a day."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta

from costsvc.db.entries import FxRate
from costsvc.errors import NoRateInForce

Rates = Mapping[str, Sequence[FxRate]]


def by_currency(rates: Iterable[FxRate]) -> Rates:
    """Rates of each currency, in order of their days."""
    found: dict[str, list[FxRate]] = {}
    for rate in sorted(rates, key=lambda rate: rate.first_day):
        found.setdefault(rate.currency, []).append(rate)
    return found


def rate_in_force(rates: Rates, currency: str, day: date, holds_days: int) -> FxRate:
    """The last rate not after a day, and not older than it holds. [units of currency/USD]

    Raises
    ------
    NoRateInForce
        There is none; says which currencies and days have one.
    """
    of_currency = rates.get(currency, ())
    before = bisect_right(of_currency, day, key=lambda rate: rate.first_day)
    newest = of_currency[before - 1] if before else None
    if newest is not None and day - newest.first_day <= timedelta(days=holds_days):
        return newest
    first, last = (of_currency[0].first_day, of_currency[-1].first_day) if of_currency else (None, None)
    there = (
        f"Its rates are of {first} to {last}, and one holds for {holds_days} days."
        if of_currency
        else f"Currencies with rates: {', '.join(sorted(rates)) or 'none'}."
    )
    raise NoRateInForce(
        f"There is no rate of {currency} on {day.isoformat()}. {there} Give your own as fx_rate, in units of "
        f"{currency} per USD, or ask for another day or currency.",
        field="currency",
        details={
            "currencies": sorted(rates),
            "first_day": first.isoformat() if first else None,
            "last_day": last.isoformat() if last else None,
            "holds_days": holds_days,
        },
    )
