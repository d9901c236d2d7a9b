"""An assumed objective that makes a quote dear says so, with the number and the way out; no other does."""

import re
from dataclasses import replace
from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.engine.serving import solve
from costsvc.quoting.answer.plain import number_exact
from costsvc.quoting.choice import choose
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from costsvc.quoting.scenario import resolve
from costsvc.quoting.steep import SLOWER_RATIO, most_saved_share
from tests.engine.shapes import TODAY

STEEP = {"model": "llama-3.1-405b", "gpu": "h100", "ctx": 8192}


def quote(catalog: Catalog, **asked: Any) -> Any:
    return make_quote(catalog, parse_request(asked), TODAY)


@pytest.mark.parametrize("asked", [STEEP, {**STEEP, "gpu": "a100-sxm-80gb"}], ids=["kept", "relaxed"])
def test_a_dear_assumption_names_what_a_little_more_time_saves(
    catalog: Catalog, asked: dict[str, Any]
) -> None:
    dear = quote(catalog, **asked)
    found = re.search(
        r"at tpot_ms=([\d.]+) a request would cost about (\d+)% less", " ".join(dear["warnings"])
    )
    assert found
    slower = quote(catalog, **asked, tpot_ms=found[1])
    saved = 1 - float(slower["cost"]["request_usd"]) / float(dear["cost"]["request_usd"])
    assert saved == pytest.approx(int(found[2]) / 100, abs=0.01)


@pytest.mark.parametrize(
    "asked",
    [{**STEEP, "tpot_ms": 50}, {**STEEP, "slo": "interactive"}, {**STEEP, "model": "llama-3.1-70b"}],
    ids=["asked", "named", "flat"],
)
def test_what_was_asked_for_or_saves_little_is_not_warned_of(catalog: Catalog, asked: dict[str, Any]) -> None:
    assert not any("makes this quote dear" in warning for warning in quote(catalog, **asked)["warnings"])


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192},
        {"model": "llama-3.1-405b", "gpu": "h200", "ctx": 32_768},
        {"model": "qwen3-32b", "gpu": "l40s", "ctx": 16_384},
        {"model": "deepseek-v3", "gpu": "h200", "ctx": 8192, "mode": "disaggregated"},
        {"model": "llama-3.1-70b", "gpu": "h100", "ctx": 8192, "speculation": "ngram"},
        STEEP,
    ],
    ids=lambda asked: f"{asked['model']} on {asked['gpu']}",
)
def test_the_cheap_bound_is_never_below_what_is_saved(catalog: Catalog, asked: dict[str, Any]) -> None:
    scenario = resolve(catalog, parse_request(asked), TODAY)
    choice = choose(scenario)
    slower = replace(choice.objectives, tpot_s=SLOWER_RATIO * (choice.objectives.tpot_s or 0.0))
    state = solve(choice.replica, choice.lengths, slower, scenario.utilization_share)
    saved = 1.0 - number_exact(state.request_gpu_s) / number_exact(choice.state.request_gpu_s)
    assert saved <= most_saved_share(choice) + 1e-6
