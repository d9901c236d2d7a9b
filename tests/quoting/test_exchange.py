"""Other currencies: the caller's rate, or the catalog's of the day, named with its day and source."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.errors import NoRateInForce
from costsvc.quoting.answer.currency import with_asked_currency
from costsvc.quoting.compare import CompareRequest, compare
from costsvc.quoting.given import parse_filter
from costsvc.quoting.money import money
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from costsvc.quoting.rows import RowMaker
from costsvc.quoting.tables.comparisons import comparison_table

TODAY = date(2026, 11, 29)
ASKED = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192}
RATES: tuple[tuple[str, dict[str, str]], ...] = (("EUR", {"fx_rate": "0.5"}), ("USD", {}))


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


def amounts(section: Any) -> dict[str, Any]:
    """All amounts of an answer by their paths."""
    parts = section.items() if isinstance(section, dict) else enumerate(section)
    found: dict[str, Any] = {}
    for name, value in parts:
        inner = amounts(value) if isinstance(value, dict | list) else {"": value}
        found |= {f"{name}.{path}".rstrip("."): amount for path, amount in inner.items()}
    return found


def test_every_amount_of_a_quote_is_there_in_the_currency(catalog: Catalog) -> None:
    profile = {
        "input_tokens": 6000,
        "output_tokens": 500,
        "system_prompt_tokens": 2000,
        "rps": 5,
        "hourly_shape": [1] * 24,
    }
    asked = {"model": "llama-3-70b", "gpu": "h100", "profile": profile, "currency": "EUR", "fx_rate": "0.5"}
    answer = make_quote(catalog, parse_request(asked), TODAY)
    shown = amounts({name: answer[name] for name in answer if name not in ("request", "sources")})
    of_usd = [path for path in shown if "usd" in path.replace(".", "_").split("_") and "exchange" not in path]
    bounds = [path for path in shown if path.endswith((".low", ".high"))]
    assert len(of_usd) > 100
    assert len(bounds) == 8
    for path in (*of_usd, *bounds):
        euros = path.replace("usd", "eur") if path in of_usd else f"{path}_eur_per_mtok"
        usd = shown[path]
        assert shown[euros] == (None if usd is None else money(Decimal(usd) * Decimal("0.5"))), path


def test_rows_hold_low_high_and_cost_in_the_currency_too(catalog: Catalog) -> None:
    maker = RowMaker(catalog, TODAY)
    euro, dollar = (maker.row({**ASKED, "currency": one, **more}) for one, more in RATES)
    for name in ("input_low_{}_per_mtok", "blended_high_{}_per_mtok", "request_{}", "replica_{}_per_hour"):
        of_usd, in_currency = name.format("usd"), name.format("currency")
        assert dollar[in_currency] == dollar[of_usd] == euro[of_usd]
        assert Decimal(euro[in_currency]) == pytest.approx(Decimal(euro[of_usd]) / 2, rel=Decimal("1e-8"))
    assert (euro["units_per_usd"], dollar["units_per_usd"]) == ("0.500000", None)


def test_a_comparison_is_in_the_currency_with_its_rate_or_refused(catalog: Catalog) -> None:
    def compared(currency: str) -> Any:
        asked = parse_filter(CompareRequest, {**ASKED, "currency": currency})
        return with_asked_currency(catalog, asked, TODAY, lambda: compare(catalog, asked, TODAY))

    euro, dollar = (next(iter(comparison_table(compared(one)).rows)) for one in ("EUR", "USD"))
    assert compared("EUR")["exchange"]["currency"] == "EUR"
    assert (euro["currency"], dollar["currency"]) == ("EUR", "USD")
    assert dollar["request_currency"] == dollar["request_usd"] == euro["request_usd"]
    assert float(euro["request_currency"]) == pytest.approx(float(euro["request_usd"]) / 1.1172, rel=1e-6)
    with pytest.raises(NoRateInForce):
        compared("XXX")


def test_every_rate_is_positive_and_the_euros_is_the_inverse_of_the_dollars(catalog: Catalog) -> None:
    rates = catalog.content.fx_rates
    assert min(rate.units_per_usd for rate in rates) > 0
    euro = catalog.fx_rate("EUR", date(2024, 1, 31), holds_days=1)
    assert euro.units_per_usd * Decimal("1.0837") == pytest.approx(Decimal(1), abs=Decimal("1e-9"))
