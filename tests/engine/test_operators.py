"""Rooflines: no operator beats a roof, faster memory never slows, and lone ranks pay for no link."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costsvc.db.snapshot import Catalog
from costsvc.engine import operators
from costsvc.engine.attention import Floats
from costsvc.engine.loop import loop_batch
from costsvc.engine.parameters import active_parameter_count, distinct_experts, parameter_count
from costsvc.engine.serving import lengths_of
from costsvc.engine.specs import GpuSpec, MatrixEfficiency, MoeFfn
from costsvc.engine.step import step_time
from tests.engine.shapes import BF16, card, judged, one, requests, served

H100 = card()
JUDGED = judged()
EFFICIENCY = JUDGED.gemm["bf16"]
EXAMPLES = settings(max_examples=60, deadline=None)
positive = st.floats(1e-9, 1e3)
token_counts = st.floats(1.0, 1e5)


@EXAMPLES
@given(compute=positive, memory=positive)
def test_a_roof_is_never_beaten(compute: float, memory: float) -> None:
    time = float(np.asarray(operators.roof_s(compute, memory)))
    assert max(compute, memory) * (1 - 1e-12) <= time <= compute + memory


@EXAMPLES
@given(tokens=token_counts, parameters=st.floats(1e6, 1e11))
def test_a_matrix_product_keeps_below_both_peaks(tokens: float, parameters: float) -> None:
    time = one(operators.gemm(parameters, BF16, H100, EFFICIENCY).seconds(tokens))
    assert 2 * tokens * parameters / time <= H100.dense_flops_per_s["bf16"]
    assert 2 * parameters / time <= H100.memory_bytes_per_s
    assert one(operators.gemm(parameters, BF16, H100, EFFICIENCY).seconds(2 * tokens)) > time


def test_utilisation_rises_with_tokens_and_saturates() -> None:
    tokens = np.asarray([8.0, 64.0, 512.0, 4_096.0, 65_536.0])
    time = np.asarray(operators.gemm(1e9, BF16, H100, EFFICIENCY).seconds(tokens))
    utilisation = 2 * tokens * 1e9 / time / H100.dense_flops_per_s["bf16"]
    assert np.all(np.diff(utilisation) > 0)
    assert utilisation[-1] == pytest.approx(EFFICIENCY.mfu_share, rel=0.02)
    assert np.all(utilisation < EFFICIENCY.mfu_share)


def test_no_tokens_cost_nothing() -> None:
    assert one(operators.gemm(1e9, BF16, H100, EFFICIENCY).seconds(0.0)) == 0


@EXAMPLES
@given(tokens=token_counts, context=st.floats(1.0, 1e6))
def test_doubling_bandwidth_never_slows(tokens: float, context: float) -> None:
    faster = replace(H100, memory_bytes_per_s=2 * H100.memory_bytes_per_s)
    functions: tuple[Callable[[GpuSpec], Floats], ...] = (
        lambda gpu: operators.gemm(1e9, BF16, gpu, EFFICIENCY).seconds(tokens),
        lambda gpu: operators.attention_decode(context, context, gpu, JUDGED, BF16).seconds(tokens),
        lambda gpu: operators.attention_prefill(context, context, context, gpu, JUDGED).seconds(tokens),
    )
    for function in functions:
        assert one(function(faster)) <= one(function(H100))


def test_attention_keeps_below_both_peaks() -> None:
    read, flops = 1e9, 1e12
    decode = one(operators.attention_decode(read, flops, H100, JUDGED, BF16).seconds(1.0))
    prefill = one(operators.attention_prefill(flops, read, 1e5, H100, JUDGED).seconds(1.0))
    for time in (decode, prefill):
        assert read / time < H100.memory_bytes_per_s
        assert flops / time < H100.dense_flops_per_s["bf16"]


def share(mfu: float, mbu: float, half_tokens: float) -> MatrixEfficiency:
    return MatrixEfficiency(mfu_share=mfu, mbu_share=mbu, half_tokens=half_tokens)


def test_weights_without_matrix_units_run_at_sixteen_bit(catalog: Catalog) -> None:
    a100, fp8 = catalog.gpu("a100-sxm-80gb").spec, catalog.dtype("fp8").spec
    assert operators.is_weight_only(a100, fp8)
    assert not operators.is_weight_only(H100, fp8)
    assert operators.peak_flops_per_s(a100, fp8) == a100.dense_flops_per_s["bf16"]
    table = {"bf16": share(0.8, 0.7, 50.0), "fp8": share(0.5, 0.6, 90.0)}
    judged_by_hand = replace(JUDGED, gemm=table, weight_only_mfu_share=0.5)
    # Half the bytes are waited for half as long, so half the rows hide them: Frantar et al., "MARLIN," PPoPP 2025.
    assert operators.matrix_efficiency(judged_by_hand, a100, fp8, experts=False) == share(0.4, 0.6, 25.0)
    assert operators.matrix_efficiency(judged_by_hand, H100, fp8, experts=False) == table["fp8"]


def test_a_lone_rank_pays_for_no_link() -> None:
    for message, ranks, free in ((1e6, 1.0, True), (0.0, 8.0, True), (1e6, 8.0, False)):
        assert (one(operators.all_reduce(ranks, H100, JUDGED).seconds(message)) == 0) is free
        assert (one(operators.all_to_all(ranks, 8, H100, JUDGED).seconds(message)) == 0) is free


# DeepSeek-AI, "DeepSeek-V3," arXiv:2412.19437, section 3.2.2: a token crosses once to each node.
@pytest.mark.parametrize(("ranks", "places", "on_network"), [(8, 8, False), (32, 4, True), (144, 18, True)])
@pytest.mark.parametrize("chosen", [1, 2, 8])
def test_a_token_goes_once_to_each_place_of_its_experts(
    *, ranks: int, places: int, on_network: bool, chosen: int
) -> None:
    random = np.random.default_rng(ranks)
    picks = random.integers(0, places, (20_000, chosen))
    elsewhere = np.mean([len(set(row) - {0}) for row in picks.tolist()])
    message = 1e9
    rate = JUDGED.network_bytes_per_s if on_network else H100.link_bytes_per_s * JUDGED.link_efficiency_share
    seconds = one(operators.all_to_all(float(ranks), chosen, H100, JUDGED).seconds(message))
    latency = JUDGED.network_latency_s if on_network else JUDGED.link_latency_s
    latency += JUDGED.exchange_latency_s
    assert (seconds - latency) * rate / message == pytest.approx(float(elsewhere), rel=0.02)


@EXAMPLES
@given(ranks=st.integers(2, 8), message=st.floats(1.0, 1e9))
def test_an_all_reduce_moves_twice_all_but_its_share(ranks: int, message: float) -> None:
    # Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, section 4.
    rate = H100.link_bytes_per_s * JUDGED.link_efficiency_share
    expected = JUDGED.link_latency_s + 2 * (ranks - 1) / ranks * message / rate
    assert one(operators.all_reduce(float(ranks), H100, JUDGED).seconds(message)) == pytest.approx(expected)


def test_beyond_the_scale_up_domain_the_network_is_used() -> None:
    latency, rate = operators.link(np.asarray([8.0, 16.0]), H100, JUDGED)
    assert list(np.asarray(rate)) == [
        H100.link_bytes_per_s * JUDGED.link_efficiency_share,
        JUDGED.network_bytes_per_s,
    ]
    assert list(np.asarray(latency)) == [JUDGED.link_latency_s, JUDGED.network_latency_s]


def test_a_card_without_scale_up_link_uses_pcie() -> None:
    l4 = card("l4")
    latency, rate = operators.link(2.0, l4, JUDGED)
    assert one(latency) == JUDGED.pcie_latency_s > JUDGED.link_latency_s
    assert one(rate) == l4.pcie_bytes_per_s * JUDGED.pcie_efficiency_share


# B130, github.com/inference-sim/inference-sim/issues/559: two of eight experts compute, a batch reads all.
def test_experts_compute_by_choice_and_are_read_by_coverage(catalog: Catalog) -> None:
    mixtral = catalog.model("mixtral-8x7b").spec
    idle = parameter_count(mixtral) - active_parameter_count(mixtral)
    assert 1 - idle / 45.1e9 == pytest.approx(0.25, abs=2e-3)
    ffn = next(group.ffn for group in mixtral.groups if isinstance(group.ffn, MoeFfn))
    assert [round(one(distinct_experts(ffn, tokens, 1e9)), 2) for tokens in (1.0, 4.0, 64.0)] == [
        2.0,
        5.47,
        8.0,
    ]


@pytest.mark.parametrize(
    "model", ["llama-3.1-8b", "mixtral-8x7b", "deepseek-v2-lite", "gemma-3-27b", "jamba-1.5-mini"]
)
def test_a_step_is_never_faster_than_its_bytes_and_its_arithmetic(model: str) -> None:
    replica = served(model, gpu="b200", weights="bf16")
    gpu = replica.gpu
    for sequences in (1.0, 32.0, 256.0):
        lengths = lengths_of(requests(2_000, 200))
        time = one(step_time(replica, loop_batch(replica, lengths, sequences, 4_096.0)).total_s)
        tokens = sequences + 4_096.0
        table = replica.model.vocab_size * replica.model.hidden_size
        computed = active_parameter_count(replica.model) - 2 * table
        assert time >= 2 * tokens * computed / gpu.dense_flops_per_s["bf16"]
        bytes_read = one(replica.weight_bytes) - 2 * 2 * table
        assert time >= bytes_read / gpu.memory_bytes_per_s * 0.99


def test_more_ranks_shorten_a_step_but_never_in_proportion() -> None:
    lengths = lengths_of(requests(4_000, 400))
    times = []
    for tp in (1, 2, 4, 8):
        replica = served("llama-3.1-8b", tp=tp)
        times.append(one(step_time(replica, loop_batch(replica, lengths, 64.0, 4_096.0)).total_s))
    for before, after in pairwise(times):
        assert before / 2 < after < before


def test_communication_is_nothing_on_one_accelerator_and_something_on_two() -> None:
    lengths = lengths_of(requests(1_000, 100))
    terms = [
        step_time(served("llama-3.1-8b", tp=tp), loop_batch(served("llama-3.1-8b", tp=tp), lengths, 8.0, 0.0))
        for tp in (1, 2)
    ]
    assert one(terms[0].communication_s) == 0
    assert one(terms[1].communication_s) > 0


def test_a_skewed_rank_is_busier_but_reads_no_more_than_its_experts() -> None:
    replica = served("deepseek-v3", "h200-sxm", dp=8, ep=8)
    lengths = lengths_of(requests(1_000, 100))

    def experts_s(sequences: float, skew: float) -> float:
        calibration = replace(replica.calibration, expert_skew_ratio=skew)
        batch = loop_batch(replica, lengths, sequences, 0.0)
        return one(step_time(replica.under(calibration), batch).experts_s)

    assert experts_s(16.0, 2.0) > 1.3 * experts_s(16.0, 1.0)
    assert experts_s(512.0, 2.0) < 1.3 * experts_s(512.0, 1.0)
    assert experts_s(512.0, 2.0) == pytest.approx(experts_s(1_024.0, 1.0))


def test_steps_with_prompts_wait_for_the_host_where_kernels_are_short() -> None:
    replica = served("llama-3.1-8b", tp=8)
    lengths = lengths_of(requests(1_000, 100))
    slow = replica.under(replace(replica.calibration, eager_layer_s=1e-3))
    fast = replica.under(replace(replica.calibration, eager_layer_s=1e-9))
    decode, mixed = (loop_batch(replica, lengths, 8.0, prompt) for prompt in (0.0, 1_000.0))
    assert one(step_time(slow, decode).total_s) == pytest.approx(one(step_time(fast, decode).total_s))
    assert one(step_time(slow, mixed).total_s) > 32 * 1e-3
    kernels_s = one(step_time(fast, mixed).total_s)
    assert one(step_time(slow, mixed).total_s) < kernels_s + 32 * 1e-3


@pytest.mark.parametrize(("prompt", "launched_share"), [(64.0, 0.125), (512.0, 1.0), (4_096.0, 1.0)])
def test_prompts_within_a_captured_graph_are_launched_in_part(prompt: float, launched_share: float) -> None:
    replica = served("llama-3.1-8b", tp=8)
    batch = loop_batch(replica, lengths_of(requests(1_000, 100)), 8.0, prompt)

    def step_s(eager_layer_s: float, captured_tokens: float) -> float:
        calibration = replace(
            replica.calibration, eager_layer_s=eager_layer_s, captured_tokens=captured_tokens
        )
        return one(step_time(replica.under(calibration), batch).total_s)

    assert step_s(1e-2, 512.0) == pytest.approx(step_s(launched_share * 1e-2, 1.0))
