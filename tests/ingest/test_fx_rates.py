"""The file of currency rates refuses what would make every other rate wrong."""

from datetime import date
from decimal import Decimal

import pytest
from pydantic import ValidationError

from costsvc.ingest.fx_rates import FxRatesFile

DAY = date(2026, 1, 2)


def file(rates: object) -> FxRatesFile:
    return FxRatesFile.model_validate({"source": "s", "per": "EUR", "rates": rates})


def test_rates_become_units_per_dollar() -> None:
    records = file([{"day": DAY, "units": {"USD": "1.25", "GBP": "0.75"}}]).records()
    assert {one.currency: one.units_per_usd for one in records} == {
        "EUR": Decimal("0.8"),
        "GBP": Decimal("0.6"),
    }


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ([], "at least 1 item"),
        ([{"day": DAY, "units": {"GBP": "0.8"}}], "no rate of USD"),
        ([{"day": DAY, "units": {"USD": "1.1", "EUR": "1"}}], "which all rates are of"),
        ([{"day": DAY, "units": {"USD": 1.1}}], "write money in quotes"),
        ([{"day": DAY, "units": {"USD": "0"}}], "greater than 0"),
        ([{"day": DAY, "units": {"USD": "1.1"}}] * 2, "each day once"),
        ([{"day": DAY, "units": {"USD": "1.1", "gbp": "1"}}], "pattern"),
    ],
)
def test_a_file_that_could_mislead_is_refused(rates: object, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        file(rates)
