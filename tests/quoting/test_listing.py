"""What the catalog holds, on a day."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from costsvc.db.entries import ApiPrice
from costsvc.db.snapshot import Catalog
from costsvc.errors import NotInCatalog
from costsvc.quoting.listing.api_prices import ApiPriceFilter, list_api_prices, show_api_price
from costsvc.quoting.listing.common import as_printed
from costsvc.quoting.listing.gpus import GpuFilter, list_gpus, show_gpu
from costsvc.quoting.listing.models import ModelFilter, list_models, show_model
from costsvc.quoting.listing.prices import PriceFilter, list_prices, show_price
from tests.db.examples import CONTENT, DAY, LIST, offer, with_offers

OFFERS = with_offers(
    CONTENT,
    offer("AWS EC2", [(date(2025, 1, 1), "12.29"), (date(2026, 6, 15), "6.88")], region="us-east-1"),
    offer("Example Cloud", [(date(2026, 1, 1), "3.00"), (date(2026, 11, 1), None)]),
    offer("Bare Metal", [(date(2026, 1, 1), "1.00")], market="spot", excluded_reason="component only"),
)
CATALOG = Catalog(OFFERS, 7)


def test_models_are_found_by_any_of_their_spellings() -> None:
    assert [row.id for row in list_models(CATALOG, ModelFilter(q="LLAMA 3"))] == [
        "llama-3-70b",
        "llama-3.1-8b",
    ]
    assert [row.id for row in list_models(CATALOG, ModelFilter(q="meta-llama/"))] == ["llama-3-70b"]


def test_a_misspelt_family_names_the_nearest_instead_of_listing_nothing() -> None:
    with pytest.raises(NotInCatalog, match="No family 'exmple' in the catalog"):
        list_models(CATALOG, ModelFilter(family="exmple"))


def test_a_model_shows_where_each_of_its_facts_was_read() -> None:
    shown = show_model(CATALOG, "meta-llama/Meta-Llama-3-70B")
    assert shown.id == "llama-3-70b"
    assert [(source.field, source.title) for source in shown.sources] == [
        ("hidden_size", "Data sheet"),
        ("vocab_size", "Price list"),
    ]
    assert shown.spec["pattern"] == (0, 1, 2, 3, 4, 0)


def test_a_gpu_shows_its_reference_price_of_the_day_and_none_where_nobody_sells_it() -> None:
    before, after = (
        {row.id: row.reference_usd_per_gpu_hour for row in list_gpus(CATALOG, GpuFilter(), day)}
        for day in (date(2026, 10, 31), DAY)
    )
    assert before == {"h100-nvl": None, "h100-sxm": "4.940000"}
    assert after == {"h100-nvl": None, "h100-sxm": "6.880000"}


def test_a_gpu_says_which_of_its_numbers_nobody_confirmed() -> None:
    assert show_gpu(CATALOG, "h100", DAY).fields_not_confirmed == ("int8", "pcie")


def test_prices_are_those_in_force_on_the_day() -> None:
    shown = {
        row.provider: row.usd_per_gpu_hour for row in list_prices(CATALOG, PriceFilter(), date(2026, 6, 14))
    }
    assert shown == {"AWS EC2": "12.290000", "Bare Metal": "1.000000", "Example Cloud": "3.000000"}
    assert "Example Cloud" not in [row.provider for row in list_prices(CATALOG, PriceFilter(), DAY)]


@pytest.mark.parametrize(
    ("wanted", "providers"),
    [
        (PriceFilter(market="spot"), ["Bare Metal"]),
        (PriceFilter(provider="aws ec2"), ["AWS EC2"]),
        (PriceFilter(region="US-EAST-1"), ["AWS EC2"]),
        (PriceFilter(gpu="h100-nvl"), []),
        (PriceFilter(as_of=date(2024, 12, 31)), []),
    ],
)
def test_each_filter_of_prices_narrows_the_list(wanted: PriceFilter, providers: list[str]) -> None:
    assert [row.provider for row in list_prices(CATALOG, wanted, DAY)] == providers


def test_an_offer_kept_out_of_reference_prices_says_why() -> None:
    row = list_prices(CATALOG, PriceFilter(market="spot"), DAY)[0]
    assert (row.in_reference, row.excluded_reason) == (False, "component only")


def test_an_offer_shows_every_price_it_had_and_its_end() -> None:
    shown = show_price(CATALOG, "example-cloud-h100-sxm-on-demand-none", DAY)
    assert shown.usd_per_gpu_hour is None
    assert [(price.first_day, price.usd_per_gpu_hour) for price in shown.history] == [
        (date(2026, 1, 1), "3.000000"),
        (date(2026, 11, 1), None),
    ]


def test_an_unknown_offer_names_the_nearest() -> None:
    with pytest.raises(NotInCatalog, match="Nearest: aws-ec2-h100-sxm-on-demand-us-east-1"):
        show_price(CATALOG, "aws-ec2-h100-sxm", DAY)


def test_published_prices_show_the_newest_observation_and_each_keeps_its_history() -> None:
    old, new = (
        ApiPrice(
            provider="Example API",
            provider_model_id="org/llama-3-70b",
            source_id=LIST,
            observed=observed,
            model_id="llama-3-70b",
            input_usd_per_mtok=Decimal(usd),
        )
        for observed, usd in ((date(2025, 1, 1), "7E-7"), (date(2026, 7, 25), "0.1"))
    )
    catalog = Catalog(replace(CONTENT, api_prices=(old, new)), 1)
    newest = list_api_prices(catalog, ApiPriceFilter(model="llama3-70b"), DAY)
    assert [(row.observed, row.input_usd_per_mtok) for row in newest] == [(date(2026, 7, 25), "0.100000")]
    assert newest[0].cached_input_usd_per_mtok is None
    history = show_api_price(catalog, newest[0].id)
    assert [row.input_usd_per_mtok for row in history.observations] == ["0.100000", "0.0000007"]


def test_another_models_published_prices_are_not_shown() -> None:
    assert list_api_prices(CATALOG, ApiPriceFilter(model="qwen3-8b"), DAY) == []


@pytest.mark.parametrize(
    ("amount", "text"),
    [("7E-7", "0.0000007"), ("2.5", "2.500000"), ("1E+3", "1000.000000"), ("0", "0.000000")],
)
def test_money_is_plain_decimals(amount: str, text: str) -> None:
    assert as_printed(Decimal(amount)) == text


def test_pages_of_offers_make_the_whole_list() -> None:
    whole = list_prices(CATALOG, PriceFilter(), DAY)
    assert len(whole) >= 2
    pages, after = [], None
    while page := list_prices(CATALOG, PriceFilter(limit=1, after=after), DAY):
        assert len(page) == 1
        pages += page
        after = page[-1].id
    assert pages == whole
    of_gpu = PriceFilter(gpu="h100", after=whole[0].id)
    assert list_prices(CATALOG, of_gpu, DAY) == whole[1:]
