"""Price files: one GPU's share of what is printed, and what may not be printed."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from costsvc.db.entries import ApiPrice
from costsvc.db.prices import contexts_taken, of_one_tier, prompts_of_tiers
from costsvc.ingest.api_prices import ApiPriceFile
from costsvc.ingest.files import read_catalog

Refusal = Callable[[str, str, str], str]
PRICES = "prices/aws.yaml"


def test_the_price_of_an_instance_is_split_over_its_gpus(root: Path) -> None:
    offer = read_catalog(root).offers[0]
    assert offer.id == "aws/h100/p5.48xlarge/us-east-1/on-demand/8x"
    assert offer.provider == "AWS"
    assert [(price.first_day, price.usd_per_gpu_hour) for price in offer.prices] == [
        (date(2026, 1, 1), Decimal("12.29")),
        (date(2026, 6, 15), Decimal("6.88")),
    ]
    assert offer.notes == "2026-01-01: the source gives the month only"


def test_a_price_that_does_not_divide_keeps_nine_decimals(root: Path) -> None:
    path = root / PRICES
    text = path.read_text("utf-8").replace("gpus_per_instance: 8", "gpus_per_instance: 6")
    path.write_text(text.replace('"55.04"', '"10"').replace('"98.32"', '"240"'), "utf-8")
    prices = [price.usd_per_gpu_hour for price in read_catalog(root).offers[0].prices]
    assert [str(usd) for usd in prices] == ["40", "1.666666667"]


def test_offers_that_look_alike_are_numbered(root: Path) -> None:
    path = root / PRICES
    text = path.read_text("utf-8")
    path.write_text(text + text.partition("offers:\n")[2], "utf-8")
    ids = [offer.id for offer in read_catalog(root).offers if offer.market == "on-demand"]
    assert ids[1] == f"{ids[0]}/2"


def test_an_offer_may_end(root: Path) -> None:
    path = root / PRICES
    ended = '"55.04", source: list}\n      - {first_day: 2026-07-01, ended: true, source: list}'
    path.write_text(path.read_text("utf-8").replace('"55.04", source: list}', ended), "utf-8")
    assert read_catalog(root).offers[0].prices[-1].usd_per_gpu_hour is None


def test_offers_of_other_cards_are_checked_and_not_loaded(root: Path) -> None:
    path = root / PRICES
    text = path.read_text("utf-8")
    path.write_text(text + text.partition("offers:\n")[2].join(["offers_of_other_gpus:\n", ""]), "utf-8")
    assert len(read_catalog(root).offers) == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"55.04", source', '"55.04", usd_per_gpu_hour: "6.88", source', "State usd_per_instance_hour or"),
        ('usd_per_instance_hour: "55.04", ', "", "State usd_per_instance_hour or"),
        ("first_day: 2026-06-15", "first_day: 2025-06-15", "in order of their first day"),
        ("first_day: 2026-06-15", "first_day: 2026-01-01", "each day once"),
        ("first_day: 2026-06-15", "first_day: 2026-12-01", "is newer than `checked`"),
        ("basis: whole-instance", "basis: gpu-component-only", "states its excluded_reason"),
        ("market: on-demand", "market: barter", "field 'offers.0.market'"),
        ("market: on-demand", "market: owned", "field 'offers.0.market'"),
        ("gpus_per_instance: 8", "gpus_per_instance: 0", "field 'offers.0.gpus_per_instance'"),
        ('"55.04"', '"-1"', "greater than 0"),
        ('"55.04"', '"1e400"', "prices/aws.yaml:12"),
        ('"55.04"', '"fifty"', "is 'fifty'; it should be a number"),
        (
            'usd_per_instance_hour: "55.04"',
            'usd_per_instance_hours: "55.04"',
            "no such field. Did you mean 'usd_per_instance_hour'?",
        ),
        ("gpu: h100", "gpu: h100x", "there is no 'h100x' in the catalog; nearest: h100"),
        ('"55.04"', "55.04", 'write money in quotes, as in "2.49"'),
    ],
)
def test_a_price_that_cannot_be_is_refused(refusal: Refusal, old: str, new: str, said: str) -> None:
    assert said in refusal(PRICES, old, new)


SOLD = {"id": "m", "input_usd_per_mtok": "1", "output_usd_per_mtok": "3", "context_limit_tokens": 1000}


def api_prices(**more: object) -> tuple[ApiPrice, ...]:
    seen = {"source": "s", "observed": date(2026, 11, 1), "models": [{**SOLD, **more}]}
    return ApiPriceFile.model_validate({"provider": "one", "observations": [seen]}).records("One")


def test_each_tier_of_a_published_price_stands_with_the_context_it_ends_at() -> None:
    tiers = [{"above_tokens": at, "input_usd_per_mtok": usd} for at, usd in ((100, "2"), (500, "4"))]
    prices = api_prices(long_tiers=tiers)
    shown = [(price.input_usd_per_mtok, price.context_limit_tokens) for price in prices]
    assert shown == [(Decimal(1), 100), (Decimal(2), 500), (Decimal(4), 1000)]
    assert {price.sold_as for price in prices} == {("One", "m")}
    at = [of_one_tier(prices, ctx)[0].input_usd_per_mtok for ctx in (100, 101, 500, 501, 2000)]
    assert at == [1, 2, 2, 4, 4]
    assert {of_one_tier(prices, prompt)[0].context_limit_tokens for prompt in (100, 101, 501)} == {1000}
    assert (prompts_of_tiers(prices), contexts_taken(prices)) == ({100, 500}, {1000})
    assert api_prices()[0].context_limit_tokens == 1000


@pytest.mark.parametrize("edges", [[500, 100], [100, 100], [1000], [2000]])
def test_tiers_that_do_not_rise_are_refused(edges: list[int]) -> None:
    with pytest.raises(ValidationError, match="they rise"):
        api_prices(long_tiers=[{"above_tokens": at} for at in edges])
