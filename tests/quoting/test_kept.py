"""What quotes share is of one catalog, one case and one day, and goes with the catalog."""

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any
from weakref import ref

import pytest

from costsvc.api.json_text import to_json
from costsvc.db.entries import (
    TIER_MARK,
    ApiPrice,
    DatedPrice,
    Offer,
    PrivateOffer,
    PrivatePrices,
    Source,
)
from costsvc.db.snapshot import Catalog
from costsvc.quoting.kept import once_per_catalog
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from tests.engine.shapes import TODAY

FIRST: dict[str, Any] = {"model": "llama-3.1-70b", "gpu": "h100", "ctx": 8_192}
# Each differs from the first in one thing that a shared part of an answer depends on.
OTHERS: list[dict[str, Any]] = [
    {},
    {"model": "llama-3.3-70b"},
    {"gpu": "h200"},
    {"stack": "vllm"},
    {"weights": "fp8"},
    {"kv": "fp8"},
    {"as_of": "2026-06-01"},
    {"slo": "strict"},
    {"turns": 3},
    {"currency": "EUR"},
    {"market": "spot"},
    {"provider": "Lambda"},
    {"price_usd_per_gpu_hour": "2"},
    {"speculation": "ngram"},
    {"speculation": "draft-model", "draft_model": "llama-3.1-8b"},
    {"speculation": "draft-model", "draft_model": "llama-3.2-1b"},
]
PRIVATE = PrivatePrices(
    owner="owner a",
    revision=1,
    offers=(
        PrivateOffer(
            offer=Offer(
                id="private/x",
                provider="X",
                gpu_id="h100-sxm",
                market="on-demand",
                prices=(
                    DatedPrice(
                        first_day=date(2026, 1, 1), usd_per_gpu_hour=Decimal("1.10"), source_id="private/s"
                    ),
                ),
            ),
            sources=(Source(id="private/s", title="Contract", kind="vendor", accessed=date(2026, 1, 1)),),
        ),
    ),
)


def answered(catalog: Catalog, **given: Any) -> bytes:
    return to_json(make_quote(catalog, parse_request({**FIRST, **given}), TODAY))


def fresh(catalog: Catalog) -> Catalog:
    return Catalog(catalog.content, catalog.revision)


@contextmanager
def without_collector() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def test_an_answer_does_not_depend_on_what_was_asked_before(catalog: Catalog) -> None:
    warm = fresh(catalog)
    first = [answered(warm, **given) for given in OTHERS]
    again = [answered(warm, **given) for given in reversed(OTHERS)][::-1]
    alone = [answered(fresh(catalog), **given) for given in OTHERS]
    assert first == again == alone
    assert len(set(alone)) == len(OTHERS)


def test_published_prices_follow_the_tier_that_a_prompt_falls_in(catalog: Catalog) -> None:
    short = ApiPrice(
        provider="T",
        provider_model_id="llama",
        source_id=catalog.content.sources[0].id,
        observed=TODAY,
        model_id=FIRST["model"],
        input_usd_per_mtok=Decimal(0),
        output_usd_per_mtok=Decimal("0.01"),
        context_limit_tokens=10_000,
    )
    long = replace(
        short,
        provider_model_id=f"llama{TIER_MARK}10k)",
        output_usd_per_mtok=Decimal("0.02"),
        context_limit_tokens=None,
    )
    tiered = Catalog(replace(catalog.content, api_prices=(*catalog.content.api_prices, short, long)), None)

    def asked(ctx: int) -> Any:
        cheapest = json.loads(answered(tiered, ctx=ctx, output=1))["market"]["cheapest"]
        return [one["output_usd_per_mtok"] for one in cheapest if one["provider"] == "T"]

    cheap, dear = ["0.0100000000"], ["0.0200000000"]
    assert [asked(ctx) for ctx in (9_999, 10_002, 10_001, 100_000)] == [cheap, dear, cheap, dear]


def test_an_owner_sees_another_price_and_everybody_the_public_one(catalog: Catalog) -> None:
    public = fresh(catalog)
    before = answered(public)
    own = json.loads(answered(public.seen_with(PRIVATE)))
    assert own["cost"]["gpu_price"]["usd_per_gpu_hour"] == "1.10000000"
    assert "private/s" in {source["id"] for source in own["sources"]}
    assert answered(public) == before


def test_a_later_revision_shows_its_own_sources(catalog: Catalog) -> None:
    earlier = fresh(catalog)
    first = json.loads(answered(earlier))["sources"][0]
    sources = tuple(
        replace(one, title="New title") if one.id == first["id"] else one for one in catalog.content.sources
    )
    later = earlier.followed_by(replace(catalog.content, sources=sources), 2)
    assert json.loads(answered(later))["sources"][0] == {**first, "title": "New title"}


def test_a_catalog_that_nobody_uses_goes_with_all_that_was_kept_of_it(catalog: Catalog) -> None:
    with without_collector():
        used = fresh(catalog)
        answered(used)
        held = ref(used)
        del used
        assert held() is None


def test_what_is_kept_is_computed_once_and_errors_each_time(catalog: Catalog) -> None:
    asked = []

    @once_per_catalog
    def share(_: Catalog, number: int) -> float:
        asked.append(number)
        return 1 / number

    assert [share(catalog, 2), share(catalog, 2), share(fresh(catalog), 2)] == [0.5, 0.5, 0.5]
    assert asked == [2, 2]
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            share(catalog, 0)
    assert asked == [2, 2, 0, 0]


def test_an_answer_is_one_json_text_whether_parts_of_it_were_written_before_or_not(catalog: Catalog) -> None:
    made = make_quote(fresh(catalog), parse_request(FIRST), TODAY)
    whole = json.dumps(made, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    assert to_json(made) == to_json(made) == whole
