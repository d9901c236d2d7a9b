"""Other currencies: the caller's rate, or the catalog's of the day, named with its day and source."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.errors import NoRateInForce
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from costsvc.quoting.rows import RowMaker

TODAY = date(2026, 11, 29)
ASKED = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192}


def prices(catalog: Catalog, **asked: Any) -> Any:
    return make_quote(catalog, parse_request({**ASKED, **asked}), TODAY)["prices"]


def ratio(section: Any, currency: str) -> float:
    return float(section["input"][f"{currency}_per_mtok"]) / float(section["input"]["usd_per_mtok"])


def test_the_rate_is_the_catalogs_of_the_day_and_is_named(catalog: Catalog) -> None:
    # As the European Central Bank printed on 2026-10-30: 1.1172 USD and 0.8338 GBP for a euro.
    shown = prices(catalog, currency="EUR")
    assert ratio(shown, "eur") == pytest.approx(1 / 1.1172, rel=1e-7)
    assert ratio(prices(catalog, currency="GBP"), "gbp") == pytest.approx(0.8338 / 1.1172, rel=1e-7)
    exchange = shown["exchange"]
    assert (exchange["first_day"], exchange["source"]) == ("2026-10-30", "ecb-euro-reference-rates")
    answer: Any = make_quote(catalog, parse_request({**ASKED, "currency": "EUR"}), TODAY)
    assert ["fx_rate"] in [source["covers"] for source in answer["sources"]]


def test_the_day_chooses_the_rate(catalog: Catalog) -> None:
    asked = {"currency": "EUR", "price_usd_per_gpu_hour": "2.5"}
    of_day = {day: prices(catalog, **asked, as_of=day)["exchange"] for day in ("2024-02-28", "2024-02-29")}
    assert [of["first_day"] for of in of_day.values()] == ["2024-01-31", "2024-02-29"]


def test_ones_own_rate_comes_first(catalog: Catalog) -> None:
    shown = prices(catalog, currency="EUR", fx_rate="0.5")
    assert ratio(shown, "eur") == pytest.approx(0.5)
    assert shown["exchange"] == {
        "basis": "given in the request",
        "units_per_usd": "0.500000",
        "first_day": None,
        "source": None,
    }


def test_dollars_need_no_rate(catalog: Catalog) -> None:
    assert "exchange" not in prices(catalog)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"currency": "XXX"}, "no rate of XXX on 2026-11-29. Currencies with rates: AUD, "),
        ({"currency": "EUR", "as_of": "2023-12-31"}, "of 2024-01-31 to 2026-10-30"),
        ({"currency": "EUR", "as_of": "2027-01-01"}, "one holds for 62 days"),
    ],
)
def test_without_a_rate_the_way_out_is_said(catalog: Catalog, asked: dict[str, str], words: str) -> None:
    with pytest.raises(NoRateInForce, match=words) as refused:
        prices(catalog, price_usd_per_gpu_hour="2.5", **asked)
    assert "Give your own as fx_rate, in units of" in refused.value.message


def test_a_row_says_the_same(catalog: Catalog) -> None:
    maker = RowMaker(catalog, TODAY)
    euro, dollar, unknown = (maker.row({**ASKED, "currency": one}) for one in ("EUR", "USD", "XXX"))
    shown = prices(catalog, currency="EUR")
    assert euro["output_currency_per_mtok"] == shown["output"]["eur_per_mtok"]
    assert dollar["output_currency_per_mtok"] == dollar["output_usd_per_mtok"]
    assert "no rate of XXX" in unknown["error"]


def test_every_rate_is_positive_and_the_euros_is_the_inverse_of_the_dollars(catalog: Catalog) -> None:
    rates = catalog.content.fx_rates
    assert min(rate.units_per_usd for rate in rates) > 0
    euro = catalog.fx_rate("EUR", date(2024, 1, 31), holds_days=1)
    assert euro.units_per_usd * Decimal("1.0837") == pytest.approx(Decimal(1), abs=Decimal("1e-9"))
