"""Prompts longer than a step: chunked on the rank that they lie on, and worth waiting for."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from costsvc.engine.loop import run_loop
from costsvc.engine.quantiles import ttft_quantiles_s
from costsvc.engine.replica import Replica
from costsvc.engine.serving import lengths_of, solve
from costsvc.engine.specs import Objectives
from tests.engine.shapes import one, requests, served

LAYOUTS = [
    ("deepseek-v3", "h200-sxm", {"dp": 16, "ep": 16}),
    ("deepseek-v3", "h200-sxm", {"tp": 2, "dp": 4, "ep": 8}),
    ("llama-3.1-405b", "h100-sxm", {"tp": 8, "pp": 2}),
    ("llama-3.1-70b", "h100-sxm", {"tp": 8, "pp": 4}),
    ("llama-3.1-70b", "h100-sxm", {"tp": 8}),
]


# An idle replica's figure takes all attention ranks to be as busy as the one with the prompt, so it may be later.
@pytest.mark.parametrize(("model", "gpu", "parallel"), LAYOUTS)
@pytest.mark.parametrize("prompt", [7_680, 32_000, 130_000])
def test_a_busy_replica_is_no_sooner_than_an_idle_one(
    model: str, gpu: str, parallel: dict[str, Any], prompt: int
) -> None:
    replica = served(model, gpu, **parallel)
    loop = run_loop(replica, lengths_of(requests(prompt, 500)), np.asarray([[4.0]]), 0.8)
    assert one(loop.ttft_s) > (0.5 if "dp" in parallel else 1.0) * one(loop.ttft_unloaded_s)


@pytest.mark.parametrize(("model", "gpu", "parallel"), LAYOUTS)
def test_no_step_gives_a_rank_more_of_a_prompt_than_it_takes(
    model: str, gpu: str, parallel: dict[str, Any]
) -> None:
    replica = served(model, gpu, **parallel)
    calibration = replica.calibration
    loop = run_loop(replica, lengths_of(requests(130_000, 10_000)), np.asarray([[0.1]]), 0.8)
    ranks = 1.0 + calibration.prompt_gathering_share * (one(replica.dp) - 1.0)
    most = calibration.step_token_budget_tokens * one(replica.pp) * ranks
    assert one(loop.mixed_prefill) <= most * (1 + 1e-9)


def test_long_prompts_make_some_wait_though_few_steps_carry_one() -> None:
    replica = served("llama-3.1-70b", tp=8)
    lengths = lengths_of(requests(7_680, 512))
    state = solve(replica, lengths, Objectives(tpot_s=0.05), 0.8)
    assert one(state.loop.mixed_share) < 0.1
    median_s, late_s = ttft_quantiles_s(replica, lengths, state, 0.8, (0.5, 0.95))
    assert late_s > 1.5 * median_s
    quiet = run_loop(replica, lengths, state.sequences, 0.0)
    assert one(state.loop.ttft_s) - one(quiet.ttft_s) > 0.1 * one(state.loop.mixed_step_s)


def test_ranks_that_take_their_prompts_together_wait_less_for_one_another() -> None:
    apart, together = (gathering("deepseek-v3", share) for share in (0.0, 0.8))
    lengths = lengths_of(requests(7_680, 512))
    steps = [one(run_loop(of, lengths, np.asarray([[64.0]]), 0.8).step_s) for of in (apart, together)]
    assert steps[1] < 0.9 * steps[0]


def gathering(model: str, share: float) -> Replica:
    replica = served(model, "h200-sxm", dp=8, ep=8)
    return replace(replica, calibration=replace(replica.calibration, prompt_gathering_share=share))
