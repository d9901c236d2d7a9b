"""Launch checks against brute force: every lever and every cliff by quotes of their own."""

from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.engine.reshape import keeping
from costsvc.errors import CostsvcError, DoesNotFit, SloUnreachable
from costsvc.quoting.evaluate import evaluate
from costsvc.quoting.given import parse_filter
from costsvc.quoting.launch.cliffs import cliffs_of
from costsvc.quoting.launch.offers import offers_for, usd_of_offer
from costsvc.quoting.launch.request import LaunchRequest
from costsvc.quoting.launch_check import check_launch
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from tests.docs.pages import ROOT
from tests.docs.refresh import DAY

LONG: dict[str, Any] = {"model": "llama-3.1-70b", "gpu": "h100", "ctx": 32_768}
TURNS: dict[str, Any] = {**LONG, "ctx": 16_384, "prefix_tokens": 4000, "turns": 4, "dram_gb_per_gpu": 400.0}
CASES: dict[str, dict[str, Any]] = {
    "long": LONG,
    "turns": TURNS,
    "turns without tiers": {name: value for name, value in TURNS.items() if name != "dram_gb_per_gpu"},
    "profile": {"model": "llama-3.1-70b", "gpu": "h100", "profile": "rag"},
    "a layout asked for": {**LONG, "tp": 4, "kv": "fp8"},
    "latent attention": {"model": "deepseek-v3", "gpu": "h200", "ctx": 16_384},
}


def checked(catalog: Catalog, asked: dict[str, Any]) -> Any:
    return check_launch(catalog, parse_filter(LaunchRequest, {**asked, "users": 200}), DAY)


def quoted(catalog: Catalog, asked: dict[str, Any]) -> Any:
    return make_quote(
        catalog, parse_request({name: value for name, value in asked.items() if value is not None}), DAY
    )


@pytest.fixture(scope="module")
def answers(catalog: Catalog) -> dict[str, Any]:
    return {name: checked(catalog, asked) for name, asked in CASES.items()}


@pytest.mark.parametrize("case", CASES)
def test_every_lever_costs_what_a_quote_with_its_changes_costs(
    catalog: Catalog, answers: dict[str, Any], case: str
) -> None:
    for lever in answers[case]["levers"]:
        if lever["id"] == "kv_eviction":
            continue
        changed = {**CASES[case], **lever["changes"]}
        if lever["refused"]:
            with pytest.raises(CostsvcError) as refusal:
                quoted(catalog, changed)
            assert lever["refused"] == str(refusal.value)
            continue
        quote = quoted(catalog, changed)
        assert lever["request_usd"] == quote["cost"]["request_usd"], lever["id"]
        assert lever["concurrency"] == quote["concurrency"]["limit"], lever["id"]
        assert lever["gpus_per_replica"] == quote["deployment"]["gpus"], lever["id"]
        assert lever["ttft_ms"] == quote["latency"]["ttft_ms"], lever["id"]
        assert float(lever["blended_high_usd_per_mtok"]) == pytest.approx(
            float(quote["prices"]["blended"]["high"]), rel=1e-6
        )


def test_every_lever_that_the_pages_list_was_quoted(answers: dict[str, Any]) -> None:
    seen = {lever["id"] for answer in answers.values() for lever in answer["levers"]}
    (listed,) = (
        line
        for line in (ROOT / "docs" / "api.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("Levers are ")
    )
    assert seen == set(listed.split("`")[1::2])


def test_eviction_costs_what_a_model_that_keeps_so_few_tokens_costs(
    catalog: Catalog, answers: dict[str, Any]
) -> None:
    (lever,) = [one for one in answers["long"]["levers"] if one["id"] == "kv_eviction"]
    kept_share = catalog.judgements.value("eviction_kept_share")
    quote = quoted(cast("Catalog", _Evicting(catalog, kept_share)), LONG)
    assert lever["request_usd"] == quote["cost"]["request_usd"]
    assert lever["concurrency"] == quote["concurrency"]["limit"]


@pytest.mark.parametrize("case", CASES)
def test_each_step_of_the_stack_is_a_quote_with_all_changes_up_to_it(
    catalog: Catalog, answers: dict[str, Any], case: str
) -> None:
    changes = {lever["id"]: lever["changes"] for lever in answers[case]["levers"]}
    seen_by, together = catalog, dict(CASES[case])
    for step in answers[case]["stack"]:
        together |= changes[step["id"]]
        if step["id"] == "kv_eviction":
            kept_share = catalog.judgements.value("eviction_kept_share")
            seen_by = cast("Catalog", _Evicting(catalog, kept_share))
        assert step["request_usd"] == quoted(seen_by, together)["cost"]["request_usd"], step["id"]


class _Evicting:
    """A catalog where the model asked for keeps a share of its tokens; one that drafts for it keeps all."""

    def __init__(self, catalog: Catalog, kept_share: float) -> None:
        self._catalog, self._kept_share = catalog, kept_share

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def model(self, text: str) -> Any:
        found = self._catalog.model(text)
        is_asked = text in {str(asked["model"]) for asked in CASES.values()}
        return replace(found, spec=keeping(found.spec, self._kept_share)) if is_asked else found


def _fixed(asked: dict[str, Any], deployment: Any, ctx: int) -> dict[str, Any]:
    """The same layout at another context."""
    layout = {name: deployment[name] for name in ("tp", "pp", "dp", "ep")}
    return {**asked, **layout, "output": 512, "ctx": ctx}


def test_concurrency_halves_at_the_first_context_whose_quote_says_so(
    catalog: Catalog, answers: dict[str, Any]
) -> None:
    deployment = quoted(catalog, LONG)["deployment"]

    def sequences(ctx: int) -> float:
        return float(quoted(catalog, _fixed(LONG, deployment, ctx))["concurrency"]["mean_sequences"])

    halvings = [one for one in answers["long"]["cliffs"] if one["kind"] == "concurrency_halves"]
    assert len(halvings) > 2
    most = sequences(8192)
    for place, cliff in enumerate(halvings, start=1):
        assert cliff["concurrency"] == pytest.approx(most / 2**place)
        assert sequences(cliff["ctx"] - 1) > cliff["concurrency"] * (1 - 1e-8)
        assert sequences(cliff["ctx"]) <= cliff["concurrency"] * (1 + 1e-8)


@pytest.mark.parametrize(
    ("kind", "asked", "refusal"),
    [
        (
            "memory_ends",
            {"model": "llama-3.1-8b", "gpu": "l4", "gpus": 1, "ctx": 8192, "slo": "batch"},
            DoesNotFit,
        ),
        ("objective_breaks", {**LONG, "ctx": 16_384, "ttft_ms": 2500.0}, SloUnreachable),
        ("objective_breaks", {**LONG, "ctx": 8192, "tp": 4, "tpot_ms": 21.0}, SloUnreachable),
    ],
)
def test_a_layout_ends_at_the_first_context_whose_quote_is_refused(
    catalog: Catalog, kind: str, asked: dict[str, Any], refusal: type[CostsvcError]
) -> None:
    deployment = quoted(catalog, asked)["deployment"]
    (cliff,) = [
        one for one in checked(catalog, {**asked, "today_ctx": 4096})["cliffs"] if one["kind"] == kind
    ]
    quoted(catalog, _fixed(asked, deployment, cliff["ctx"] - 1))
    with pytest.raises(refusal):
        quoted(catalog, _fixed(asked, deployment, cliff["ctx"]))


def test_steps_must_shrink_at_the_first_context_whose_quote_shrinks_them(catalog: Catalog) -> None:
    asked = {**LONG, "ctx": 8192, "tp": 4, "tpot_ms": 21.0}
    deployment = quoted(catalog, asked)["deployment"]
    cliffs = checked(catalog, {**asked, "today_ctx": 4096})["cliffs"]
    (cliff,) = [one for one in cliffs if one["kind"] == "steps_must_shrink"]
    before, here = (
        quoted(catalog, _fixed(asked, deployment, ctx)) for ctx in (cliff["ctx"] - 1, cliff["ctx"])
    )
    assert before["warnings"] == []
    assert "max_num_batched_tokens" in here["warnings"][0]


@pytest.mark.parametrize("model", ["deepseek-r1-0528", "llama-3.1-70b", "qwen3-235b-a22b"])
def test_published_prices_change_at_every_context_where_the_cheapest_is_another(
    catalog: Catalog, model: str
) -> None:
    running = evaluate(catalog, parse_request({"model": model, "gpu": "h200", "ctx": 8192}), DAY)
    window = running.scenario.model.spec.max_context_tokens
    limits = [one.context_limit_tokens for one in offers_for(catalog, running, ctx=None)]
    beside = {limit + more for limit in limits if limit for more in (0, 1)}
    contexts = sorted(ctx for ctx in beside | set(range(4096, window, 4999)) if 4096 <= ctx <= window)

    def cheapest(ctx: int) -> float | None:
        taking = offers_for(catalog, running, ctx=ctx)
        return min((usd_of_offer(one, running) for one in taking), default=None)

    found = [b for a, b in pairwise(contexts) if cheapest(a) != cheapest(b)]
    shown = [one["ctx"] for one in cliffs_of(catalog, running, 4096) if one["kind"] == "api_tier_changes"]
    assert shown == found
    assert shown or model != "deepseek-r1-0528"
