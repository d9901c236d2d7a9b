"""Every attention variant: elementwise, monotone, and equal to sums over single positions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costsvc.engine.attention import (
    Attention,
    ChunkedAttention,
    CompressedAttention,
    FullAttention,
    LatentAttention,
    RecurrentState,
    SlidingAttention,
    SparseIndexer,
    decode_visible_tokens,
    mean_visible_tokens,
)
from costsvc.engine.formulas import touched_experts
from costsvc.engine.parameters import distinct_experts, spread_ratio
from costsvc.engine.specs import MoeFfn

EVEN = 1e9
INDEXER = SparseIndexer(selected_tokens=64, heads=4, head_dim=16)
FULL = FullAttention(query_heads=8, kv_heads=2, head_dim=16, value_dim=24)
SLIDING = SlidingAttention(query_heads=8, kv_heads=2, head_dim=16, window_tokens=100)
CHUNKED = ChunkedAttention(query_heads=8, kv_heads=2, head_dim=16, chunk_tokens=100)
MLA = LatentAttention(query_heads=8, latent_dim=32, rope_dim=8, nope_dim=16, value_dim=24)
COMPRESSED = CompressedAttention(
    query_heads=8,
    head_dim=16,
    window_tokens=50,
    query_latent_dim=32,
    output_groups=2,
    output_latent_dim=8,
    compress_ratio=4,
    indexer=SparseIndexer(selected_tokens=20, heads=4, head_dim=16),
)
MAMBA = RecurrentState(variant="mamba2", state_values=1_000, conv_values=10, parameters=1)
VARIANTS: dict[str, Attention] = {
    "full": FULL,
    "mqa": replace(FULL, kv_heads=1),
    "sparse": replace(FULL, indexer=INDEXER),
    "sliding": SLIDING,
    "chunked": CHUNKED,
    "mla": MLA,
    "sparse mla": replace(MLA, indexer=INDEXER),
    "compressed": COMPRESSED,
    "compressed in full": replace(COMPRESSED, indexer=None),
    "window only": replace(COMPRESSED, compress_ratio=0, indexer=None),
    "recurrent": MAMBA,
}
variants = pytest.mark.parametrize("attention", VARIANTS.values(), ids=VARIANTS.keys())


@variants
def test_arrays_answer_like_scalars(attention: Attention) -> None:
    tokens = np.asarray([1.0, 99.0, 100.0, 101.0, 5_000.0])
    for function in (attention.kv_values, attention.visible_integral):
        assert list(np.asarray(function(tokens))) == [float(function(one)) for one in tokens]
    for pair in (attention.read_values, attention.decode_flops, attention.prefill_flops):
        assert list(np.asarray(pair(tokens, tokens))) == [float(pair(one, one)) for one in tokens]


@variants
@settings(max_examples=25, deadline=None)
@given(context=st.integers(1, 1_000_000), more=st.integers(1, 100_000))
def test_a_longer_context_never_holds_or_reads_less(attention: Attention, context: int, more: int) -> None:
    short, long = float(context), float(context + more)
    assert attention.kv_values(long) >= attention.kv_values(short)
    assert attention.visible_integral(long) >= attention.visible_integral(short)
    reads = [
        attention.read_values(decode_visible_tokens(attention, at, at + 1.0), at) for at in (short, long)
    ]
    assert attention is CHUNKED or reads[1] >= reads[0] * (1 - 1e-9)


def visible(attention: Attention, position: int) -> float:
    """Entries that the token at a position sees, itself counted as half: the integral's midpoint rule."""
    middle = position + 0.5
    match attention:
        case RecurrentState():
            return 0.0
        case SlidingAttention():
            return min(middle, attention.window_tokens)
        case ChunkedAttention():
            return middle % attention.chunk_tokens
        case CompressedAttention():
            window = min(middle, attention.window_tokens)
            if not attention.compress_ratio:
                return window
            entries = middle / attention.compress_ratio
            chosen = attention.indexer.selected_tokens if attention.indexer else entries
            return window + min(entries, chosen)
        case _:
            chosen = attention.indexer.selected_tokens if attention.indexer else middle
            return min(middle, chosen)


@variants
@pytest.mark.parametrize(("first", "last"), [(0, 1), (0, 80), (30, 700), (200, 400)])
def test_the_integral_is_the_sum_over_positions(attention: Attention, first: int, last: int) -> None:
    summed = sum(visible(attention, position) for position in range(first, last))
    mean = mean_visible_tokens(attention, float(first), float(last))
    assert mean * (last - first) == pytest.approx(summed, rel=1e-3, abs=1e-9)


def test_decode_of_varied_lengths_sees_half_a_chunk() -> None:
    positions = np.asarray([10.0, 50.0, 100.0, 1_000.0, 1_050.0, 1_099.0])
    seen = np.asarray(decode_visible_tokens(CHUNKED, positions, positions))
    assert list(seen) == [10.0, 50.0, 50.0, 50.0, 50.0, 50.0]
    drawn = np.random.default_rng(1).uniform(0, 2_000, 20_000)
    assert np.mean(drawn % 100) == pytest.approx(seen[-1], rel=0.02)


def test_mla_decodes_on_the_latent_and_prefills_expanded() -> None:
    # DeepSeek-AI, "DeepSeek-V2," 2024, arXiv:2405.04434, section 2.1.2: projections absorbed at decode.
    assert MLA.decode_flops(1.0, 1.0) == 2 * 8 * (2 * 32 + 8)
    assert MLA.prefill_flops(1.0, 1.0) == 2 * 8 * (16 + 8 + 24)
    assert FULL.decode_flops(1.0, 1.0) == 2 * 8 * (16 + 24)


def test_an_indexer_scores_every_token_and_attends_to_few() -> None:
    sparse = VARIANTS["sparse mla"]
    far, farther = (float(sparse.decode_flops(64.0, context)) for context in (1e5, 2e5))
    assert farther - far == 2 * 4 * 16 * 1e5
    assert sparse.kv_values(10.0) == 10 * (32 + 8 + 16)
    assert sparse.read_values(64.0, 1e5) == 64 * 40 + 16 * 1e5


def test_a_layer_that_shares_another_cache_stores_and_projects_none_but_reads() -> None:
    sharing = replace(FULL, shares_kv=True)
    assert sharing.kv_values(1_000.0) == 0
    assert sharing.kv_parameters(64) == 0
    assert sharing.read_values(1_000.0, 1_000.0) == FULL.read_values(1_000.0, 1_000.0) > 0


def test_a_recurrent_state_splits_over_ranks_and_never_grows() -> None:
    assert MAMBA.kv_values(1e6) == 0
    assert MAMBA.state_bytes() == 1_000 * 4 + 10 * 2
    assert MAMBA.kv_share(4.0) == 0.25


@pytest.mark.parametrize(("experts", "chosen"), [(8, 2), (64, 6), (256, 8), (16, 16)])
@pytest.mark.parametrize("tokens", [1, 3, 20, 200])
def test_distinct_experts_agree_with_uniform_routing(experts: int, chosen: int, tokens: int) -> None:
    random = np.random.default_rng(experts * 1_000 + tokens)
    draws = random.random((60, tokens, experts)).argsort(axis=-1)[:, :, :chosen]
    simulated = np.mean([len(np.unique(trial)) for trial in draws])
    ffn = MoeFfn(experts=experts, experts_per_token=chosen, intermediate_size=1)
    expected = float(np.asarray(distinct_experts(ffn, float(tokens), EVEN)))
    assert expected == pytest.approx(float(simulated), rel=0.05)
    assert chosen <= round(expected, 6) <= min(experts, tokens * chosen)


@pytest.mark.parametrize(("experts", "chosen"), [(8, 2), (64, 6), (256, 8), (16, 16)])
def test_a_batch_touches_fewer_experts_where_some_are_sought_more(experts: int, chosen: int) -> None:
    ffn = MoeFfn(experts=experts, experts_per_token=chosen, intermediate_size=1)
    tokens = np.asarray([1.0, 3.0, 20.0, 200.0, 1e9])

    def touched(evenness: float) -> np.ndarray:
        return np.asarray(distinct_experts(ffn, tokens, evenness))

    uniform, uneven, more_uneven = touched(EVEN), touched(4.0), touched(1.0)
    assert uniform == pytest.approx(experts * (1.0 - (1.0 - chosen / experts) ** tokens))
    assert touched(0.5)[0] == pytest.approx(chosen)
    assert uneven[-1] == pytest.approx(experts)
    assert np.all(np.diff(uneven) >= 0)
    assert np.all((more_uneven <= uneven * (1 + 1e-9)) & (uneven <= uniform * (1 + 1e-9)))


def test_popularity_spread_as_a_gamma_variate_is_met() -> None:
    # One token in 64 seeks an expert on average, by a popularity of shape 2; each of 100 tokens asks anew.
    random = np.random.default_rng(1)
    ffn = MoeFfn(experts=640, experts_per_token=10, intermediate_size=1)
    rates = random.gamma(2.0, (640 / 630) ** 0.5 - 1.0, 200_000)
    simulated = float(np.mean(random.poisson(100 * rates) > 0))
    assert touched_experts(100.0, 1.0, spread_ratio(ffn, 2.0), 2.0) == pytest.approx(simulated, rel=0.01)
