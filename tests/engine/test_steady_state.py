"""What holds of every steady state, over models, cards, lengths and layouts of the shipped catalog."""

from dataclasses import replace

import numpy as np
import pytest

from costsvc.engine.loop import run_loop
from costsvc.engine.memory import memory_budget, sequences_that_fit
from costsvc.engine.replica import Replica
from costsvc.engine.serving import BOUNDS, SteadyState, lengths_of, solve
from costsvc.engine.specs import Objectives, Traffic
from tests.engine.shapes import one, requests, served

INTERACTIVE = Objectives(tpot_s=0.05)
SLOW = Objectives(tpot_s=0.2, ttft_s=20.0)

# Model, card, weights and layout: every kind of attention, every kind of parallelism.
CASES = {
    "dense": ("llama-3.1-8b", "h100-sxm", "bf16", {}),
    "tensor parallel": ("llama-3-70b", "h100-sxm", "bf16", {"tp": 4}),
    "stages": ("llama-3-70b", "a100-sxm-80gb", "bf16", {"tp": 2, "pp": 2}),
    "mha": ("llama-2-7b", "l40s", "fp16", {}),
    "mla": ("deepseek-v3", "h200-sxm", "fp8_block", {"tp": 8, "ep": 8}),
    "attention data parallel": ("deepseek-v3", "b200-sxm", "fp8_block", {"dp": 8, "ep": 8}),
    "sliding": ("gemma-3-27b", "h100-sxm", "bf16", {"tp": 2}),
    "chunked": ("llama-4-scout", "h100-sxm", "bf16", {"tp": 4, "ep": 4}),
    "hybrid": ("qwen3-next-80b-a3b", "h200-sxm", "bf16", {"tp": 2, "ep": 2}),
    "mxfp4": ("gpt-oss-120b", "b200-sxm", "mxfp4-experts", {"tp": 1, "ep": 1}),
}
SPLIT = {"mode": "disaggregated"}
every_case = pytest.mark.parametrize("case", CASES)


def replica_of(case: str, **changes: object) -> Replica:
    model, gpu, weights, parallel = CASES[case]
    return served(model, gpu, weights, **{**parallel, **changes})  # type: ignore[arg-type]


def state(
    replica: Replica, traffic: Traffic, objectives: Objectives = SLOW, utilization: float = 0.8
) -> SteadyState:
    return solve(replica, lengths_of(traffic), objectives, utilization)


@every_case
@pytest.mark.parametrize("mode", ["colocated", "disaggregated"])
@pytest.mark.parametrize("objectives", [SLOW, Objectives()], ids=["objectives", "none"])
def test_a_longer_context_never_raises_concurrency_nor_lowers_the_cost(
    case: str, mode: str, objectives: Objectives
) -> None:
    replica = replica_of(case, mode=mode)
    longest = replica.model.max_context_tokens
    contexts = [c for c in (600, 1_024, 2_000, 4_096, 8_192, 8_800, 16_384, 32_768, 65_536) if c <= longest]
    states = [state(replica, requests(context - 256, 256), objectives) for context in contexts]
    running = np.asarray([one(found.sequences) for found in states])
    costs = np.asarray([one(found.request_gpu_s) for found in states])
    reached = running[~np.isnan(running)]
    assert len(reached) >= 3
    assert not np.isnan(running[: len(reached)]).any(), "once out of reach, longer contexts stay so"
    assert np.all(np.diff(reached) <= 1e-6 * reached[:-1])
    assert np.all(np.diff(costs[~np.isnan(costs)]) > 0)


@every_case
def test_more_cache_bits_never_raise_concurrency(case: str) -> None:
    traffic = requests(8_000, 190)
    found = {
        kv: one(state(replica_of(case, kv=kv), traffic, Objectives()).limits["memory"])
        for kv in ("fp8", "bf16", "fp32")
    }
    assert found["fp8"] >= found["bf16"] >= found["fp32"]
    assert found["fp8"] > found["fp32"]


@every_case
@pytest.mark.parametrize("ctx", [2_048, 16_384])
def test_the_concurrency_is_the_largest_that_keeps_every_bound(case: str, ctx: int) -> None:
    if CASES[case][0] == "llama-2-7b":
        ctx = min(ctx, 4_096)
    replica, traffic = replica_of(case), requests(ctx - 300, 300)
    objectives = Objectives(tpot_s=0.08)
    found = state(replica, traffic, objectives)
    running, bound = one(found.sequences), BOUNDS[int(found.bound.item())]
    assert running >= 1
    assert all(one(limit) >= running * (1 - 1e-9) for limit in found.limits.values())
    assert objectives.tpot_s is not None
    assert one(found.loop.step_s) <= objectives.tpot_s * (1 + 1e-6)
    more = running * 1.01
    if bound == "tpot":
        assert one(found.loop.step_s) == pytest.approx(objectives.tpot_s, rel=1e-6)
        beyond = run_loop(replica, lengths_of(traffic), np.asarray([[more]]), 0.8)
        assert one(beyond.step_s) > objectives.tpot_s
    else:
        assert one(found.limits[bound]) < more


def test_a_ttft_objective_binds_and_is_kept() -> None:
    replica, traffic = replica_of("dense"), requests(3_000, 100)
    free = one(state(replica, traffic, Objectives()).loop.ttft_s)
    found = state(replica, traffic, Objectives(ttft_s=free * 0.7))
    assert one(found.loop.ttft_s) == pytest.approx(free * 0.7, rel=1e-6)
    assert BOUNDS[int(found.bound.item())] == "ttft"


def test_an_objective_out_of_reach_has_no_concurrency() -> None:
    found = state(replica_of("dense"), requests(3_000, 100), Objectives(tpot_s=1e-4))
    assert np.isnan(found.sequences).all()
    assert np.isnan(found.request_gpu_s).all()


@every_case
def test_hits_raise_the_rate_and_no_hits_are_no_cache(case: str) -> None:
    replica = replica_of(case)
    plain = state(replica, requests(3_000, 300))
    none = state(replica, requests(3_000, 300, cached=0.0, shared_cached_tokens=0.0))
    half = state(replica, requests(3_000, 300, cached=1_500.0))
    assert one(none.request_gpu_s) == one(plain.request_gpu_s) > one(half.request_gpu_s)


def test_a_prefix_held_once_leaves_room_for_more_sequences() -> None:
    replica = replica_of("mha")
    each, once = (
        state(replica, requests(3_500, 500, cached=3_000, shared_cached_tokens=shared), Objectives())
        for shared in (0.0, 3_000.0)
    )
    assert BOUNDS[int(each.bound.item())] == "memory"
    assert one(once.limits["memory"]) > 3 * one(each.limits["memory"])


def test_recomputing_every_prefix_costs_far_more_than_keeping_it() -> None:
    kept, recomputed = (
        state(replica_of("dense", kv_cache=on), requests(1_000, 200), Objectives()) for on in (True, False)
    )
    assert one(recomputed.request_gpu_s) > 20 * one(kept.request_gpu_s)
    assert one(recomputed.limits["memory"]) > one(kept.limits["memory"])


def test_contiguous_slabs_hold_fewer_sequences_than_pages() -> None:
    traffic = replace(requests(700, 200), context_limit_tokens=8_192.0)
    paged, slabs = (
        state(replica_of("dense", allocation=policy), traffic, Objectives()).limits["memory"]
        for policy in ("paged", "contiguous")
    )
    budget = one(memory_budget(replica_of("dense")).kv_bytes)
    assert one(slabs) == pytest.approx(budget / (8_192 * 131_072))
    assert 8 < one(paged) / one(slabs) < 8_192 / 800


def test_an_engine_that_never_evicts_reserves_the_end() -> None:
    # TensorRT-LLM: 0.9 x what is free, over KV bytes x (input + output), within 4 % of measured rows.
    replica = served("llama-3.1-8b", "h100-sxm", "fp8", kv="fp8", stack="tensorrt-llm")
    budget = memory_budget(replica)
    fit = one(sequences_that_fit(replica, budget, lengths_of(requests(1_000, 1_000))))
    assert fit == pytest.approx(one(budget.kv_bytes) / (65_536 * 2_000), rel=0.01)


@pytest.mark.parametrize("where", ["input_cv", "output_cv"])
def test_equal_means_with_more_spread_run_fewer_sequences_and_cost_more(where: str) -> None:
    replica = replica_of("mha")
    equal, spread = (state(replica, requests(1_500, 1_500, **{where: cv}), Objectives()) for cv in (0.0, 1.0))
    assert one(spread.sequences) < 0.95 * one(equal.sequences)
    assert one(spread.request_gpu_s) > one(equal.request_gpu_s)


def test_resident_tokens_are_biased_to_long_outputs() -> None:
    # E[O^2] / 2 E[O]: by simulation of log-normal outputs, each in flight as long as it is.
    lengths = lengths_of(requests(1_000, 400, output_cv=1.0))
    random = np.random.default_rng(7)
    sigma = np.sqrt(np.log(2.0))
    outputs = random.lognormal(np.log(400) - sigma**2 / 2, sigma, 400_000)
    weighed = float(np.sum(outputs * (1_000 + outputs / 2)) / np.sum(outputs))
    assert one(lengths.resident) == pytest.approx(weighed, rel=0.02)
    seen = random.choice(outputs, 400_000, p=outputs / outputs.sum()) * random.random(400_000)
    assert one(lengths.resident_deviation) == pytest.approx(float(np.std(seen)), rel=0.05)


def test_layouts_solve_alike_alone_and_in_a_search() -> None:
    from_search = served("llama-3-70b", tp=4)
    both = replace(from_search, deployments=from_search.deployments)
    traffic = requests(7_680, 512)
    assert one(state(both, traffic).request_gpu_s) == one(state(from_search, traffic).request_gpu_s)
