"""The day that DeepSeek published, at what this engine says it costs.

DeepSeek-AI, "Day 6: DeepSeek-V3/R1 Inference System Overview," open-infra-index, 2025-03-01: 608 billion
input tokens, 56.3 % of them found in the cache, and 168 billion output tokens in 24 hours on 226.75 nodes of
eight H800, 87,072 USD at 2 USD per GPU-hour; prefill units of EP32, decode units of EP144, 20 to 22 tokens/s
for each user, a mean context of 4,989 tokens at decode.
"""

from dataclasses import dataclass

import pytest

from costsvc.engine.memory import sequence_bytes
from costsvc.engine.serving import SteadyState, lengths_of, solve
from costsvc.engine.specs import Objectives, Traffic
from tests.engine.shapes import one, requests, served

INPUT_TOKENS, OUTPUT_TOKENS, HIT_SHARE = 608e9, 168e9, 0.563
MEAN_CONTEXT_TOKENS = 4_989
USD_PER_GPU_HOUR = 2.0
PUBLISHED_USD = 87_072.0
PUBLISHED_INPUT_PER_NODE, PUBLISHED_OUTPUT_PER_NODE = 73_700.0, 14_800.0
SECONDS_PER_TOKEN = 1 / 20


@dataclass(frozen=True, slots=True)
class Day:
    """The published traffic on this engine's pools, all nodes busy."""

    prefill_usd: float
    decode_usd: float
    input_per_node: float
    output_per_node: float
    users_tokens_per_s: float


def traffic() -> Traffic:
    """Requests whose mean context while decoding is the published one: prompt + output / 2."""
    prompts_per_output = INPUT_TOKENS / OUTPUT_TOKENS
    output = MEAN_CONTEXT_TOKENS / (prompts_per_output + 0.5)
    prompt = prompts_per_output * output
    return requests(prompt, output, cached=HIT_SHARE * prompt)


def pool(ranks: int) -> tuple[float, SteadyState]:
    replica = served("deepseek-v3", "h800", "fp8_block", dp=ranks, ep=ranks, mode="disaggregated")
    objectives = Objectives(tpot_s=SECONDS_PER_TOKEN)
    return one(replica.gpus), solve(replica, lengths_of(traffic()), objectives, 1.0)


def day() -> Day:
    gpus_prefill, prefill = pool(32)
    gpus_decode, decode = pool(144)
    output, prompt = traffic().output_tokens, traffic().input_tokens
    served_requests = OUTPUT_TOKENS / output
    prefill_gpu_s = gpus_prefill * one(prefill.loop.prefill_s)
    decode_gpu_s = gpus_decode * one(decode.loop.step_s) * output / one(decode.sequences)
    usd = served_requests * USD_PER_GPU_HOUR / 3600
    return Day(
        prefill_usd=usd * prefill_gpu_s,
        decode_usd=usd * decode_gpu_s,
        input_per_node=8 * prompt / prefill_gpu_s,
        output_per_node=8 * output / decode_gpu_s,
        users_tokens_per_s=1 / one(decode.loop.step_s),
    )


def test_the_published_bill_is_its_nodes_times_its_price() -> None:
    node_hours = 226.75 * 24
    assert node_hours * 8 * USD_PER_GPU_HOUR == pytest.approx(PUBLISHED_USD)


def test_the_day_costs_what_was_published_within_a_factor_of_one_and_a_half() -> None:
    # Above it: nothing here overlaps communication with computation, as DeepSeek's two micro-batches do.
    ours = day()
    ratio = (ours.prefill_usd + ours.decode_usd) / PUBLISHED_USD
    assert 1 / 1.5 < ratio < 1.5


def test_nodes_carry_what_was_published_within_a_factor_of_two() -> None:
    ours = day()
    assert ours.users_tokens_per_s >= 20 * (1 - 1e-6)
    assert 0.5 < ours.input_per_node / PUBLISHED_INPUT_PER_NODE < 2
    assert 0.5 < ours.output_per_node / PUBLISHED_OUTPUT_PER_NODE < 2


def test_the_day_fits_the_cards() -> None:
    replica = served("deepseek-v3", "h800", "fp8_block", dp=144, ep=144, mode="disaggregated")
    held = one(sequence_bytes(replica, float(MEAN_CONTEXT_TOKENS)))
    assert held == 70_272 * MEAN_CONTEXT_TOKENS
    _, decode = pool(144)
    assert one(decode.sequences) / 144 * held < replica.gpu.usable_memory_bytes
