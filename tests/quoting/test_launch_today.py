"""What runs today is compared on equal terms: it finds the same share of its prompts again as the feature."""

import re
from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest
from costsvc.quoting.given import parse_filter
from costsvc.quoting.launch.request import LaunchRequest
from costsvc.quoting.launch_check import check_launch
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from tests.docs.refresh import DAY

BASE = {"model": "llama-3.1-70b", "gpu": "h100"}
TRAFFIC: dict[str, dict[str, Any]] = {
    "a profile": {"profile": "rag"},
    "an agent's profile": {"profile": "agent-tools"},
    "turns": {"ctx": 32_768, "prefix_tokens": 4000, "turns": 4, "dram_gb_per_gpu": 200.0},
}


def checked(catalog: Catalog, **asked: Any) -> Any:
    return check_launch(catalog, parse_filter(LaunchRequest, {**BASE, "users": 300, **asked}), DAY)


def hit_share(side: Any) -> float:
    return float(side["cached_input_tokens"] / side["input_tokens"])


@pytest.mark.parametrize("traffic", TRAFFIC)
def test_today_finds_as_much_of_its_prompts_again(catalog: Catalog, traffic: str) -> None:
    answer = checked(catalog, **TRAFFIC[traffic])
    now, feature = answer["now"], answer["with_feature"]
    assert hit_share(feature) > 0.1
    assert hit_share(now) == pytest.approx(hit_share(feature), rel=1e-6)
    asked = {**BASE, "ctx": now["ctx"], "output": round(now["output_tokens"]), "hit_rate": hit_share(now)}
    quote: Any = make_quote(catalog, parse_request(asked), DAY)
    assert float(now["request_usd"]) == pytest.approx(float(quote["cost"]["request_usd"]), rel=1e-6)


@pytest.mark.parametrize("profile", ["rag", "chat"])
def test_a_profile_beside_requests_of_its_own_mean_costs_as_much(catalog: Catalog, profile: str) -> None:
    multiples = checked(catalog, profile=profile)["multiples"]
    assert multiples["request_usd"] == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("asked", [{"ctx": 32_768}, {"ctx": 32_768, "hit_rate": 0.4}])
def test_a_rate_that_was_asked_for_holds_on_both_sides(catalog: Catalog, asked: dict[str, Any]) -> None:
    answer = checked(catalog, **asked)
    for side in (answer["now"], answer["with_feature"]):
        assert hit_share(side) == pytest.approx(asked.get("hit_rate", 0.0))


@pytest.mark.parametrize(
    "asked",
    [
        {"ctx": 128_000, "prefix_tokens": 126_000, "today_ctx": 2},
        {"ctx": 131_072, "output": 16, "prefix_tokens": 131_050, "today_ctx": 2000},
        {"ctx": 131_072, "hit_rate": 0.9999, "today_ctx": 1000},
    ],
)
def test_of_todays_prompts_too_a_token_is_computed(catalog: Catalog, asked: dict[str, Any]) -> None:
    now = checked(catalog, **asked)["now"]
    assert now["input_tokens"] - now["cached_input_tokens"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("asked", "field"),
    [({"today_ctx": 1000, "today_output": 1000}, "today_output"), ({"today_ctx": 1}, "today_ctx")],
)
def test_a_request_of_today_without_room_is_refused_by_its_name(
    catalog: Catalog, asked: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        checked(catalog, ctx=32_768, **asked)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"gpu": "mi300x", "ctx": 16_384, "users": 100},
            "fits on the replicas of today, and costs least on replicas of 4 x AMD Instinct MI300X: one replica runs "
            r"\d+ requests at once instead of \d+ on 2 GPUs, and 100 users take \d+ AMD",
        ),
        (
            {"model": "llama-3.1-8b", "ctx": 131_072, "today_ctx": 131_000, "users": 1},
            "fits on the replicas of today: one replica runs 1 request at once, as today, and 1 user takes 1 NVIDIA",
        ),
    ],
)
def test_the_verdict_says_whether_the_layout_is_todays(
    catalog: Catalog, asked: dict[str, Any], words: str
) -> None:
    assert re.search(words, checked(catalog, **asked)["verdict"]["sentence"])
