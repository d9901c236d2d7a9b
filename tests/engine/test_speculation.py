"""Speculative decoding against closed forms: what a step yields, computes and holds, and what it costs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from costsvc.engine import operators
from costsvc.engine.loads import serve
from costsvc.engine.loop import loop_batch, prompt_batch, run_loop
from costsvc.engine.memory import memory_budget, sequence_bytes
from costsvc.engine.parameters import embedding_parameters, layer_parameters, parameter_count
from costsvc.engine.pricing import marginal_prices, marginal_rays, step_prices
from costsvc.engine.quantiles import tpot_quantiles_s
from costsvc.engine.replica import Replica, compile_replica
from costsvc.engine.serving import lengths_of, solve
from costsvc.engine.specs import Draft, ModelSpec, Objectives, Speculation
from costsvc.engine.speculation import deviation_tokens, expected_tokens, mtp_module
from costsvc.engine.step import step_time
from costsvc.quoting.predict import offered_load
from tests.engine.shapes import (
    DENSE,
    LLAMA_ATTENTION,
    PLAIN,
    by_hand,
    judged,
    layered,
    layout,
    one,
    requests,
    shipped,
)

LENGTHS = lengths_of(requests(2_000, 400))
BIG = layered([(80, LLAMA_ATTENTION, DENSE)], hidden_size=8192)
SMALL = layered([(16, LLAMA_ATTENTION, DENSE)], hidden_size=2048)


def proposing(
    tokens: int, acceptance: float, draft: ModelSpec | None = None, *, shared: bool = False, **parallel: Any
) -> Replica:
    drafting = None
    if draft is not None:
        drafting = Draft(model=draft, weights=PLAIN, calibration=judged(), shares_tables=shared)
    speculation = Speculation(
        proposer="draft-model" if draft else "ngram",
        draft_tokens=tokens,
        acceptance_share=acceptance,
        draft=drafting,
    )
    return by_hand(BIG, layout(**{"tp": 4, **parallel}, speculation=speculation))


def plain(model: ModelSpec = BIG, **parallel: Any) -> Replica:
    return by_hand(model, layout(**{"tp": 4, **parallel}))


@pytest.mark.parametrize(
    ("acceptance", "tokens"), [(0.0, 3), (0.3, 1), (0.7, 4), (0.85, 1), (0.95, 8), (1.0, 5)]
)
def test_a_step_yields_what_drawing_says(acceptance: float, tokens: int) -> None:
    draws = np.random.default_rng(7).random((200_000, tokens)) < acceptance
    yielded = 1 + np.logical_and.accumulate(draws, axis=1).sum(axis=1)
    assert expected_tokens(acceptance, tokens) == pytest.approx(yielded.mean(), rel=5e-3)
    assert deviation_tokens(acceptance, tokens) == pytest.approx(yielded.std(), rel=2e-2, abs=1e-9)
    if acceptance < 1:
        closed = (1 - acceptance ** (tokens + 1)) / (1 - acceptance)
        assert expected_tokens(acceptance, tokens) == pytest.approx(closed)


@pytest.mark.parametrize("tokens", [1, 4])
def test_verifying_computes_all_proposals_and_reads_the_cache_once(tokens: int) -> None:
    proposed, alone = proposing(tokens, 0.5), plain()
    verified = step_time(proposed, loop_batch(proposed, LENGTHS, 32.0, 0.0))
    decode = loop_batch(alone, LENGTHS, 32.0, 0.0)
    many = step_time(alone, replace(decode, decode=32.0 * (tokens + 1), sampled=32.0 * (tokens + 1)))
    for term in ("projections_s", "ffn_s", "head_s", "communication_s", "layer_overhead_s"):
        assert one(getattr(verified, term)) == pytest.approx(one(getattr(many, term))), term
    once = step_time(alone, decode)
    visible = float(LENGTHS.prompt + LENGTHS.output / 2)
    read = LLAMA_ATTENTION.kv_values_per_token * visible * 2 / 4
    flops = (tokens + 1) * float(np.asarray(LLAMA_ATTENTION.decode_flops(visible, visible))) / 4
    layer = operators.attention_decode(read, flops, alone.gpu, alone.calibration, alone.kv)
    expected = 80 * layer.seconds(32.0)
    assert one(verified.decode_attention_s) == pytest.approx(
        float(expected) * alone.calibration.slowdown_ratio
    )
    assert one(verified.decode_attention_s) < one(once.decode_attention_s) * (tokens + 1)
    assert verified.draft_s == 0.0


def test_a_draft_passes_once_for_each_token_and_prefills_the_same_prompts() -> None:
    proposed, draft = proposing(3, 0.7, SMALL), plain(SMALL)
    mixed = step_time(proposed, loop_batch(proposed, LENGTHS, 16.0, 512.0))
    decode = step_time(draft, loop_batch(draft, LENGTHS, 16.0, 0.0))
    prompts = step_time(draft, replace(loop_batch(draft, LENGTHS, 16.0, 512.0), decode=0.0, sampled=0.0))
    assert one(mixed.draft_s) == pytest.approx(3 * one(decode.accelerator_s) + one(prompts.accelerator_s))
    alone = step_time(proposed, prompt_batch(proposed, LENGTHS, 512.0))
    assert one(alone.draft_s) == pytest.approx(one(prompts.accelerator_s), rel=1e-6)


@pytest.mark.parametrize("acceptance", [0.0, 0.6, 1.0])
def test_time_per_token_is_the_step_over_what_it_yields(acceptance: float) -> None:
    replica = proposing(4, acceptance, SMALL)
    loop = run_loop(replica, LENGTHS, 24.0, 0.8)
    yielded = expected_tokens(acceptance, 4)
    room = replica.calibration.step_token_budget_tokens - 24 * 5
    arriving = 2_000 * 24 / 400 * yielded
    prefill = np.clip(arriving, min(2_000, room), room)
    share = min(arriving / prefill, 1.0)
    decode_s, mixed_s = (
        one(step_time(replica, loop_batch(replica, LENGTHS, 24.0, tokens)).total_s)
        for tokens in (0.0, prefill)
    )
    assert one(loop.mixed_share) == pytest.approx(share)
    assert one(loop.step_s) == pytest.approx((share * mixed_s + (1 - share) * decode_s) / yielded)


def test_nothing_accepted_is_slower_than_not_proposing_and_all_accepted_faster() -> None:
    alone = one(run_loop(plain(), LENGTHS, 4.0, 0.8).step_s)
    assert one(run_loop(proposing(4, 0.0, SMALL), LENGTHS, 4.0, 0.8).step_s) > alone
    assert one(run_loop(proposing(4, 1.0, SMALL), LENGTHS, 4.0, 0.8).step_s) < alone / 2


def test_the_step_budget_holds_every_proposal() -> None:
    replica = proposing(3, 0.5, SMALL)
    limit = one(solve(replica, LENGTHS, Objectives(), 0.8).limits["step_tokens"])
    yielded = expected_tokens(0.5, 3)
    tokens = limit * 4 + 2_000 * limit / 400 * yielded
    assert tokens == pytest.approx(replica.calibration.step_token_budget_tokens)


@pytest.mark.parametrize("tp", [1, 4])
def test_memory_holds_the_weights_and_the_cache_of_the_draft(tp: int) -> None:
    replica, alone = proposing(3, 0.5, SMALL, tp=tp), plain(tp=tp)
    weights = memory_budget(replica).weight_bytes - memory_budget(alone).weight_bytes
    assert one(weights) == pytest.approx(parameter_count(SMALL) * 2 / tp, rel=1e-3)
    cache = sequence_bytes(replica, 1000.0) - sequence_bytes(alone, 1000.0)
    assert one(cache) == 16 * LLAMA_ATTENTION.kv_values_per_token * 1000 * 2 / tp


def test_a_draft_that_cannot_be_split_lies_whole_on_each_rank() -> None:
    odd = replace(LLAMA_ATTENTION, query_heads=14, kv_heads=2)
    replica = proposing(2, 0.5, layered([(4, odd, DENSE)], hidden_size=1024))
    assert replica.draft is not None
    assert (one(replica.draft.tp), one(replica.tp)) == (1.0, 4.0)


def test_modules_of_the_catalog_are_explained_by_their_model_s_own_blocks() -> None:
    specs = [model.spec for model in shipped().models.values() if model.spec.mtp_parameters]
    assert len(specs) > 20
    for spec in specs:
        module = mtp_module(spec)
        own = layer_parameters(module.groups[0], spec.hidden_size).total + module.extra_parameters
        misses = [abs((own + n * embedding_parameters(spec)) / spec.mtp_parameters - 1) for n in range(3)]
        assert min(misses) < 1e-3, spec.id


def test_a_module_holds_its_layer_and_its_projection_and_no_tables() -> None:
    spec = layered([(80, LLAMA_ATTENTION, DENSE)], hidden_size=8192, mtp_parameters=10**9)
    replica = proposing(1, 0.85, mtp_module(spec), shared=True)
    weights = one(memory_budget(replica).weight_bytes - memory_budget(plain()).weight_bytes)
    layer = layer_parameters(spec.groups[0], 8192)
    split, norms = layer.total - layer.norms + 2 * 8192**2, layer.norms
    assert weights == pytest.approx((split / 4 + norms) * 2)


@pytest.mark.parametrize("mode", ["colocated", "disaggregated"])
def test_prices_add_up_to_the_request(mode: str) -> None:
    replica = proposing(3, 0.7, SMALL, mode=mode)
    state = solve(replica, LENGTHS, Objectives(tpot_s=0.05), 0.8)
    cost = one(state.request_gpu_s)
    (ray,) = marginal_rays(replica, [LENGTHS], Objectives(tpot_s=0.05), 0.8)
    for prices in (
        marginal_prices(replica, LENGTHS, ray, cost),
        step_prices(replica, LENGTHS, state, cost),
    ):
        assert abs(prices.residual_share) < 5e-3
        assert 2_000 * prices.uncached + 400 * prices.output == pytest.approx(cost)


def test_quantiles_spread_with_the_number_accepted() -> None:
    replica = proposing(4, 0.7)
    state = solve(replica, LENGTHS, Objectives(tpot_s=0.05), 0.8)
    rng = np.random.default_rng(3)
    accepted = np.logical_and.accumulate(rng.random((4_000, 400, 4)) < 0.7, axis=2).sum(axis=2) + 1
    steps = (np.cumsum(accepted, axis=1) < 400).sum(axis=1) + 1
    quiet = replace(state, loop=replace(state.loop, mixed_share=state.loop.mixed_share * 0.0))
    median, tail = tpot_quantiles_s(replica, LENGTHS, quiet, (0.5, 0.95))
    assert tail / median == pytest.approx(np.quantile(steps, 0.95) / np.median(steps), rel=0.02)


def test_the_gain_of_one_module_is_about_the_published_one() -> None:
    """DeepSeek reports 1.8 times the tokens/s, SGLang 1.8 times at batch 1 and 1.5 times at batch 32."""
    catalog = shipped()
    entry, gpu = catalog.model("deepseek-v3"), catalog.gpu("h200").spec
    plan, kv = catalog.weight_plan_spec("fp8_block"), catalog.dtype("bf16").spec
    resolved = catalog.judgements.calibration(gpu, catalog.stack("sglang"), "moe", plan, kv)
    draft = Draft(
        model=mtp_module(entry.spec), weights=plan, calibration=resolved.calibration, shares_tables=True
    )
    speculation = Speculation(proposer="mtp", draft_tokens=1, acceptance_share=0.85, draft=draft)
    lengths = lengths_of(requests(500, 1_000))
    for batch, published in ((1.0, 1.8), (32.0, 1.5)):
        times = [
            one(run_loop(replica, lengths, batch, 0.8).decode_step_s) / replica.tokens_per_step
            for replica in (
                compile_replica(
                    entry.spec,
                    gpu,
                    resolved.calibration,
                    [layout(tp=8, weights=plan, kv=kv, speculation=how)],
                )
                for how in (None, speculation)
            )
        ]
        assert times[0] / times[1] == pytest.approx(published, rel=0.15)


def test_a_batch_without_arrivals_makes_as_many_tokens_a_step_as_a_loop() -> None:
    replica = proposing(3, 0.7)
    found = serve(replica, LENGTHS, offered_load("static", concurrency=4.0))
    loop = run_loop(replica, LENGTHS, 4.0, 1.0)
    assert one(found.tpot_s) == pytest.approx(one(loop.decode_step_s) / replica.tokens_per_step)
