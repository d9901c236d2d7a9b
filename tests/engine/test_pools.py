"""Disaggregated deployments: a prefill pool and a decode pool whose rates match and whose bills add up."""

import pytest

from costsvc.engine.loop import prompt_batch, run_loop, step_token_limit, transfer_s, ttft_unloaded_s
from costsvc.engine.memory import sequence_bytes
from costsvc.engine.pricing import fleet, step_prices
from costsvc.engine.replica import Replica
from costsvc.engine.serving import SteadyState, lengths_of, solve
from costsvc.engine.specs import Objectives
from costsvc.engine.step import step_time
from tests.engine.shapes import one, requests, served

CASES = [
    ("llama-3-70b", {"tp": 4}),
    ("deepseek-v3", {"tp": 8, "ep": 8}),
    ("deepseek-v3", {"dp": 16, "ep": 16}),
    ("qwen3-next-80b-a3b", {"tp": 2, "ep": 2}),
    ("llama-3.1-8b", {}),
]
every_case = pytest.mark.parametrize(("model", "parallel"), CASES)
TRAFFIC = requests(3_000, 300, cached=1_000)


def split(model: str, parallel: dict[str, int]) -> tuple[Replica, SteadyState]:
    replica = served(model, "h200-sxm", mode="disaggregated", **parallel)  # type: ignore[arg-type]
    return replica, solve(replica, lengths_of(TRAFFIC), Objectives(tpot_s=0.08), 0.8)


@every_case
def test_a_request_costs_its_decode_time_and_its_prefill_time(model: str, parallel: dict[str, int]) -> None:
    replica, state = split(model, parallel)
    decode = one(state.loop.step_s) * 300 / one(state.sequences)
    assert one(state.request_gpu_s) == pytest.approx(one(replica.gpus) * (decode + one(state.loop.prefill_s)))
    assert 0 < one(state.loop.transfer_s) / one(replica.dp) < one(state.loop.prefill_s)


@every_case
def test_the_pools_rates_match(model: str, parallel: dict[str, int]) -> None:
    _, state = split(model, parallel)
    prefilled_per_s = one(state.prefill_replicas) / one(state.loop.prefill_s)
    assert prefilled_per_s == pytest.approx(one(state.requests_per_s))


@every_case
def test_each_pool_bills_its_own_tokens(model: str, parallel: dict[str, int]) -> None:
    replica, state = split(model, parallel)
    cost = one(state.request_gpu_s)
    prices = step_prices(replica, lengths_of(TRAFFIC), state, cost, pools=True)
    gpus = one(replica.gpus)
    assert prices.output * 300 == pytest.approx(gpus * one(state.loop.step_s) * 300 / one(state.sequences))
    assert prices.uncached * 2_000 + prices.cached * 1_000 == pytest.approx(gpus * one(state.loop.prefill_s))
    assert abs(prices.residual_share) < 1e-9


@every_case
def test_the_cache_is_sent_and_its_time_is_paid(model: str, parallel: dict[str, int]) -> None:
    replica, state = split(model, parallel)
    lengths = lengths_of(TRAFFIC)
    sent = one(sequence_bytes(replica, 3_000.0)) / replica.calibration.network_bytes_per_s
    assert one(transfer_s(replica, lengths)) == pytest.approx(sent)
    budget = replica.calibration.step_token_budget_tokens
    full = one(step_time(replica, prompt_batch(replica, lengths, budget)).total_s)
    computed = full * 2_000 / one(step_token_limit(replica))
    # Attention ranks send their own prompts at the same time, each over its own ports.
    assert one(state.loop.prefill_s) == pytest.approx(computed + sent / one(replica.dp))
    assert one(ttft_unloaded_s(replica, lengths)) > sent


def test_the_decode_pool_never_waits_for_a_prompt() -> None:
    together, apart = (
        run_loop(served("llama-3-70b", tp=4, mode=mode), lengths_of(TRAFFIC), 16.0, 0.8)
        for mode in ("colocated", "disaggregated")
    )
    assert one(apart.step_s) == one(apart.decode_step_s) < one(together.step_s)
    assert one(apart.mixed_share) == 0


def test_both_pools_are_sized_in_whole_replicas() -> None:
    sized = fleet(offered_rps=10.0, replica_rps=4.0, utilization_share=0.8, prefill_s=0.5)
    assert (sized.replicas, sized.prefill_replicas) == (4, 7)
    assert sized.multiplier_ratio == pytest.approx(11 / (2.5 + 5.0))
