"""Shapes to parameters, and parameters to the bytes that each accelerator holds."""

from itertools import pairwise

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.engine.attention import FullAttention
from costsvc.engine.parameters import active_parameter_count, layer_products, parameter_count
from costsvc.engine.replica import stage_patterns
from costsvc.engine.specs import DenseFfn, DtypeSpec, ModelSpec, MoeFfn, WeightPlan
from tests.engine.shapes import BF16, PLAIN, by_hand, layered, layout, one, served

ATTENTION = FullAttention(query_heads=32, kv_heads=8, head_dim=128)
MIXTRAL = layered(
    [(32, ATTENTION, MoeFfn(experts=8, experts_per_token=2, intermediate_size=14_336))],
    hidden_size=4096,
    vocab_size=32_000,
)

# Model cards: Llama-3.1-8B has 8,030,261,248 parameters, Mixtral-8x7B 46,702,792,704 of which a token meets
# 12,879,925,248 (safetensors totals and config of the releases).
EXACT = [
    ("llama-3.1-8b", 8_030_261_248, 8_030_261_248),
    ("mixtral-8x7b", 46_702_792_704, 12_879_925_248),
    ("llama-3-70b", 70_553_706_496, 70_553_706_496),
    ("llama-3.1-405b", 405_853_388_800, 405_853_388_800),
]


@pytest.mark.parametrize(("name", "total", "active"), EXACT)
def test_counts_are_the_published_ones(catalog: Catalog, name: str, total: int, active: int) -> None:
    spec = catalog.model(name).spec
    assert (parameter_count(spec), active_parameter_count(spec)) == (total, active)


def test_a_mixtral_written_by_hand_counts_alike() -> None:
    assert (parameter_count(MIXTRAL), active_parameter_count(MIXTRAL)) == EXACT[1][1:]


def test_every_count_is_within_two_per_cent_or_says_why(catalog: Catalog) -> None:
    checked = 0
    for entry in catalog.models.values():
        if entry.published_parameters is None or entry.parameter_difference_reason is not None:
            continue
        # A release may carry prediction layers in its file; its count includes them then.
        counts = [parameter_count(entry.spec), parameter_count(entry.spec) + entry.spec.mtp_parameters]
        nearest = min(abs(count / entry.published_parameters - 1) for count in counts)
        assert nearest <= 0.02, entry.id
        checked += 1
    assert checked > 150


@pytest.mark.parametrize("layers", [7, 61, 80])
@pytest.mark.parametrize("stages", [1, 2, 3, 5, 7])
def test_stages_share_all_layers_and_the_last_has_no_more_than_others(layers: int, stages: int) -> None:
    cut = stage_patterns(range(layers), stages)
    sizes = [len(stage) for stage in cut]
    assert sum(sizes) == layers
    assert max(sizes) - min(sizes) <= 1
    assert sizes[-1] == min(sizes)
    assert [index for stage in cut for index in stage] == list(range(layers))
    assert all(before[-1] + 1 == after[0] for before, after in pairwise(cut))


def weights(model: ModelSpec, plan: WeightPlan = PLAIN, **parallel: int) -> float:
    return one(by_hand(model, layout(weights=plan, **parallel)).weight_bytes)


def test_one_accelerator_holds_every_parameter(catalog: Catalog) -> None:
    for name in ("llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "gemma-3-27b", "jamba-1.5-mini", "gpt2"):
        spec = catalog.model(name).spec
        # The last norm of a model is a vector that the sum over tensors leaves to the rounding.
        assert weights(spec) == pytest.approx(2 * parameter_count(spec), rel=1e-5)


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_tensor_parallel_ranks_hold_all_and_replicate_only_small_parts(tp: int) -> None:
    whole, share = weights(MIXTRAL), weights(MIXTRAL, tp=tp, ep=1)
    replicated = 2 * 32 * (4096 * 8 + 2 * 4096)
    assert tp * share == pytest.approx(whole + (tp - 1) * replicated, rel=1e-6)


def test_kv_projections_are_replicated_beyond_the_kv_heads() -> None:
    model = layered([(10, FullAttention(query_heads=32, kv_heads=2, head_dim=128), None)])
    two, eight = weights(model, tp=2), weights(model, tp=8)
    own = 2 * (4096 * 2 * 2 * 128) * 10
    split = weights(model) - own - 2 * 10 * 2 * 4096
    assert 2 * two == pytest.approx(split + own + 2 * (2 * 10 * 2 * 4096))
    assert 8 * eight == pytest.approx(split + 4 * own + 8 * (2 * 10 * 2 * 4096))


def test_experts_spread_over_all_ranks_and_attention_is_copied() -> None:
    alone, spread = weights(MIXTRAL), weights(MIXTRAL, dp=8, ep=8)
    experts = 2 * 32 * 8 * 3 * 4096 * 14_336
    assert spread == pytest.approx(alone - experts * 7 / 8)
    assert weights(MIXTRAL, tp=8, ep=8) == pytest.approx(weights(MIXTRAL, tp=8, ep=1))


def test_stages_hold_their_layers_and_the_tables_at_the_ends() -> None:
    table = 2 * 32_000 * 4096
    layer = (weights(MIXTRAL) - 2 * table) / 32
    assert weights(MIXTRAL, pp=4) == pytest.approx(8 * layer + table)


def test_each_class_of_tensors_keeps_its_own_type() -> None:
    fp8 = DtypeSpec(id="fp8", value_bytes=1.0, arithmetic=("fp8",))
    plan = WeightPlan(id="mixed", attention=BF16, ffn=BF16, experts=fp8, embedding=BF16, other=BF16)
    experts = 32 * 8 * 3 * 4096 * 14_336
    assert weights(MIXTRAL) - weights(MIXTRAL, plan) == pytest.approx(experts)


def test_a_dense_layer_may_be_gated_or_not() -> None:
    for gated, matrices in ((True, 3), (False, 2)):
        ffn = DenseFfn(intermediate_size=1_000, gated=gated)
        grown = parameter_count(layered([(2, None, ffn)])) - parameter_count(layered([(1, None, ffn)]))
        assert grown == matrices * 4096 * 1_000 + 2 * 4096


def test_released_fp8_halves_what_is_stored_in_fp8() -> None:
    bf16, fp8 = (one(served("llama-3-70b", weights=plan, tp=8).weight_bytes) for plan in ("bf16", "fp8"))
    tables = 2 * 2 * 128_256 * 8192 / 8
    assert (bf16 - tables) / (fp8 - tables) == pytest.approx(2, rel=2e-3)


@pytest.mark.parametrize(
    ("model", "products"),
    [
        ("llama-3-70b", {4}),  # q k v, output, gate and up, down
        ("mixtral-8x7b", {5}),  # and the router
        ("deepseek-v3", {7, 10}),  # latents of MLA; experts beside shared ones from the fourth layer on
        ("nemotron-h-8b", {2}),  # each layer a mixer or a feed-forward block
    ],
)
def test_a_layer_launches_its_matrix_products(catalog: Catalog, model: str, products: set[int]) -> None:
    assert {layer_products(group) for group in catalog.model(model).spec.groups} == products
