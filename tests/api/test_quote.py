"""Quotes over HTTP."""

from decimal import Decimal
from typing import Any

import pytest

from tests.api.conftest import TODAY, Client

QUOTE = "/quote?model=llama-3-70b&gpu=h100&ctx=8192"
GROUPS = [
    "as_of",
    "catalog_revision",
    "engine_version",
    "request",
    "deployment",
    "cost",
    "prices",
    "prefix_caching",
    "context_rent",
    "concurrency",
    "memory",
    "latency",
    "throughput",
    "market",
    "assumptions",
    "sources",
    "warnings",
]


def quoted(client: Client, url: str) -> Any:
    response = client.get(url)
    assert response.status_code == 200, response.text
    return response.json()


def test_the_example_of_the_documentation_is_quoted_with_a_deployment_that_fits(client: Client) -> None:
    answer = quoted(client, QUOTE)
    assert [name for name in answer if name in GROUPS] == GROUPS
    assert answer["as_of"] == TODAY.isoformat()
    assert answer["deployment"]["gpus"] > 1


def test_prices_are_decimal_texts_between_their_bounds(client: Client) -> None:
    prices = quoted(client, QUOTE)["prices"]
    for name in ("input", "cached_input", "output", "blended"):
        low, price, high = (prices[name][part] for part in ("low", "usd_per_mtok", "high"))
        assert isinstance(price, str)
        assert 0 < Decimal(low) < Decimal(price) < Decimal(high)
    assert Decimal(prices["cached_input"]["usd_per_mtok"]) < Decimal(prices["input"]["usd_per_mtok"])


def test_every_default_is_echoed(client: Client) -> None:
    request = quoted(client, QUOTE)["request"]
    assert (request["gpu"], request["output_tokens"], request["market"]) == ("h100-sxm", 512, "on-demand")
    assert "market" in request["defaults"]
    assert "ctx" not in request["defaults"]


def test_the_callers_own_gpu_price_scales_the_quote(client: Client) -> None:
    cheap, dear = (quoted(client, f"{QUOTE}&price_usd_per_gpu_hour={price}") for price in (2, 4))
    ratio = Decimal(dear["prices"]["output"]["usd_per_mtok"]) / Decimal(
        cheap["prices"]["output"]["usd_per_mtok"]
    )
    assert float(ratio) == pytest.approx(2, rel=1e-6)


def test_the_day_chooses_the_price(client: Client) -> None:
    then = quoted(client, f"{QUOTE}&as_of=2026-06-01")
    assert then["as_of"] == "2026-06-01"
    assert then["cost"]["gpu_price"]["last_observed"] <= "2026-06-01"


def test_parameters_that_change_nothing_leave_the_answer_as_it_is(client: Client, key: str) -> None:
    assert client.get(f"{QUOTE}&v=1&api_key={key}").json() == client.get(QUOTE).json()


def test_a_trace_is_shown_where_it_is_asked_for(client: Client) -> None:
    assert "trace" not in quoted(client, QUOTE)
    assert quoted(client, f"{QUOTE}&trace=1")["trace"]


def test_the_revision_that_was_used_can_be_asked_for_again(client: Client) -> None:
    revision = quoted(client, QUOTE)["catalog_revision"]
    assert quoted(client, f"{QUOTE}&revision={revision}") == quoted(client, QUOTE)


def test_a_quote_for_a_profile_is_posted(client: Client) -> None:
    body = {
        "model": "llama-3-70b",
        "gpu": "h100",
        "profile": {"input_tokens": 6000, "output_tokens": 400, "system_prompt_tokens": 1500},
    }
    response = client.post("/quote", json=body)
    assert response.status_code == 200, response.text
    assert response.json()["prefix_caching"]["hit_rate"] > 0
    assert response.headers["Cache-Control"] == "no-store"


def test_a_body_and_a_query_get_the_same_quote(client: Client) -> None:
    body = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192}
    assert client.post("/quote", json=body).json() == quoted(client, QUOTE)
