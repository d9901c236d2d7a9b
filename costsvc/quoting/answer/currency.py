"""Amounts of an answer in the asked currency, each beside its US dollars."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Final

from costsvc.db.snapshot import Catalog
from costsvc.quoting.answer.plain import Plain, Section
from costsvc.quoting.exchange import Exchange, exchange_of, exchange_section
from costsvc.quoting.money import money
from costsvc.quoting.request import QuoteRequest

_USD: Final = "usd"
# Sections that repeat what was asked, state a rate, or print formulas in US dollars.
_APART: Final = frozenset({"request", "feature", "changes", "exchange", "trace"})
_BOUNDS: Final = ("low", "high")
_PER_MTOK: Final = "per_mtok"


def with_currency(section: Section, exchange: Exchange | None) -> Section:
    """A section with every amount of US dollars also in the currency of a rate; itself without one.

    `request_usd` is joined by `request_eur`, and `low` of a price by `low_eur_per_mtok`. An amount is the printed
    US dollars times the printed rate, so that a reader's own product is the same.
    """
    return section if exchange is None else _section(section, exchange)


def with_asked_currency(
    catalog: Catalog, request: QuoteRequest, today: date, compute: Callable[[], Section]
) -> Section:
    """What a comparison computes, with its amounts also in the asked currency and the rate as `exchange`.

    Raises
    ------
    NoRateInForce
        Before anything is computed.
    """
    exchange = exchange_of(catalog, request, request.as_of or today)
    answer = with_currency(compute(), exchange)
    if exchange is not None:
        answer["exchange"] = {"currency": exchange.currency, **exchange_section(exchange)}
    return answer


def _section(section: Section, exchange: Exchange) -> Section:
    code = exchange.currency.lower()
    shown: Section = {}
    for name, value in section.items():
        shown[name] = value if name in _APART else _inner(value, exchange)
        words = name.split("_")
        if _USD in words and name not in _APART and not isinstance(value, float):
            shown["_".join(code if word == _USD else word for word in words)] = _amount(value, exchange)
        elif name in _BOUNDS and f"{_USD}_{_PER_MTOK}" in section:
            shown[f"{name}_{code}_{_PER_MTOK}"] = _amount(value, exchange)
    return shown


def _inner(value: Plain, exchange: Exchange) -> Plain:
    if isinstance(value, dict):
        return _section(value, exchange)
    return [_inner(one, exchange) for one in value] if isinstance(value, list) else value


def _amount(value: Plain, exchange: Exchange) -> Plain:
    """An amount, or a section of nothing else, in the currency."""
    if isinstance(value, dict):
        return {name: _amount(one, exchange) for name, one in value.items()}
    return money(Decimal(value) * exchange.units_per_usd) if isinstance(value, str) else value
