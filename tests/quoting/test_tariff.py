"""Bills of published tariffs."""

from dataclasses import replace
from decimal import Decimal

import pytest

from costsvc.db.entries import ApiPrice
from costsvc.quoting.tariff import usd_of_tokens

PRICE = ApiPrice(
    provider="X",
    provider_model_id="m",
    source_id="s",
    observed=None,
    input_usd_per_mtok=Decimal("1"),
    cached_input_usd_per_mtok=Decimal("0.1"),
    output_usd_per_mtok=Decimal("4"),
)
WITHOUT_CACHED = replace(PRICE, cached_input_usd_per_mtok=None)


@pytest.mark.parametrize(
    ("price", "usd"),
    [(PRICE, (2000 * 1 + 6000 * 0.1 + 500 * 4) / 1e6), (WITHOUT_CACHED, (8000 * 1 + 500 * 4) / 1e6)],
)
def test_a_cached_token_costs_its_price_or_that_of_any_other(price: ApiPrice, usd: float) -> None:
    assert usd_of_tokens(price, uncached=2000, cached=6000, output=500) == pytest.approx(usd)


def test_means_need_not_be_whole() -> None:
    assert usd_of_tokens(PRICE, uncached=0.5, cached=0.0, output=0.25) == pytest.approx(1.5e-6)
