"""Stack distances against a cache that is simply run, and against figures counted independently."""

import json
from collections import OrderedDict
from collections.abc import Sequence
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costsvc.engine.dominance import weight_earlier_and_higher
from costsvc.engine.trace import HitCurve, Requests, hit_curve
from costsvc.errors import InvalidRequest

TRACES = Path(__file__).parents[2].parent / "shared" / "data" / "traces"
BLOCK_TOKENS = 512

# A trie of prefixes: block n of a prompt is named by the choices that lead to it.
prompts = st.lists(st.integers(0, 2), min_size=1, max_size=6)
prefix_traces = st.lists(prompts, min_size=1, max_size=40).map(
    lambda trace: [[hash(tuple(one[: end + 1])) % 2**40 for end in range(len(one))] for one in trace]
)
# Blocks in any order, some twice in a prompt: no published trace has it, and it must still be counted right.
any_traces = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=8), min_size=1, max_size=30)


def requests(trace: Sequence[Sequence[int]]) -> Requests:
    counts = np.asarray([len(blocks) for blocks in trace])
    blocks = np.asarray([block for one in trace for block in one], dtype=np.int64)
    return Requests(blocks, counts, counts * BLOCK_TOKENS - np.arange(len(trace)) % BLOCK_TOKENS)


def hits_of_a_cache(trace: Sequence[Sequence[int]], capacity: float) -> tuple[int, int]:
    """Hit blocks and tokens of a least-recently-used cache, block by block."""
    cache: OrderedDict[int, None] = OrderedDict()
    inputs = requests(trace).input_tokens
    hit_blocks = hit_tokens = 0
    for blocks, input_tokens in zip(trace, inputs, strict=True):
        hits = next((n for n, block in enumerate(blocks) if block not in cache), len(blocks))
        hit_blocks += hits
        hit_tokens += min(hits * BLOCK_TOKENS, int(input_tokens))
        for block in blocks:
            cache[block] = None
            cache.move_to_end(block)
            if len(cache) > capacity:
                cache.popitem(last=False)
    return hit_blocks, hit_tokens


@settings(deadline=None)
@given(trace=st.one_of(prefix_traces, any_traces), capacity=st.one_of(st.integers(1, 40), st.just(inf)))
def test_stack_distances_count_what_a_running_cache_hits(trace: list[list[int]], capacity: float) -> None:
    curve = hit_curve([requests(trace)], block_tokens=BLOCK_TOKENS)
    blocks, tokens = hits_of_a_cache(trace, capacity)
    assert curve.shares(capacity) == (blocks / curve.blocks, tokens / curve.input_tokens)
    assert curve.distinct_blocks == len({block for one in trace for block in one})


@settings(deadline=None)
@given(trace=prefix_traces, cut=st.integers(1, 5))
def test_a_trace_in_parts_is_the_trace_in_one(trace: list[list[int]], cut: int) -> None:
    whole = requests(trace)
    parts = [
        Requests(
            requests(trace[start : start + cut]).blocks,
            whole.counts[start : start + cut],
            whole.input_tokens[start : start + cut],
        )
        for start in range(0, len(trace), cut)
    ]
    one, many = (hit_curve(given, block_tokens=BLOCK_TOKENS) for given in ([whole], parts))
    assert np.array_equal(one.depths, many.depths)
    assert np.array_equal(one.hit_tokens, many.hit_tokens)


def test_hashes_of_any_size_are_counted_like_small_numbers() -> None:
    rng = np.random.default_rng(1)
    trace = rng.integers(0, 50, (400, 3)).tolist()
    spread = [[block * 2**55 + 7 for block in one] for one in trace]
    small, large = (
        hit_curve([requests(given[:150]), requests(given[150:])], block_tokens=BLOCK_TOKENS)
        for given in (trace, spread)
    )
    assert np.array_equal(small.hit_blocks, large.hit_blocks)
    assert small.distinct_blocks == large.distinct_blocks == 50


@given(
    points=st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 9)), unique_by=lambda p: p[0], max_size=50)
)
def test_weights_that_are_earlier_and_higher_add_up(points: list[tuple[int, int]]) -> None:
    heights = np.asarray([height for height, _ in points], dtype=np.int64)
    weights = np.asarray([weight for _, weight in points], dtype=np.int64)
    number = np.arange(len(points))
    found = weight_earlier_and_higher(heights, weights, number, number // 2)
    expected = [
        sum(int(weights[j]) for j in range(i // 2) if heights[j] > heights[i]) for i in range(len(points))
    ]
    assert found.tolist() == expected


def test_a_trace_without_requests_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no request"):
        hit_curve([], block_tokens=BLOCK_TOKENS)


# Counted independently by the maintainers of the data: blocks and tokens, for LRU over 512-token blocks.
COUNTED = [
    ("mooncake_conversation", inf, 0.366412, 0.373624),
    ("mooncake_conversation", 10_000, 0.211165, 0.215306),
    ("mooncake_conversation", 30_000, 0.325709, 0.332114),
    ("mooncake_synthetic", inf, 0.639604, 0.651244),
]


@pytest.mark.parametrize(("name", "capacity", "blocks_share", "tokens_share"), COUNTED)
def test_recorded_traces_hit_what_was_counted_independently(
    name: str, capacity: float, blocks_share: float, tokens_share: float
) -> None:
    assert recorded(name).shares(capacity) == pytest.approx((blocks_share, tokens_share), abs=1e-6)


def test_every_capacity_of_a_recorded_trace_agrees_with_a_running_cache() -> None:
    lines = recorded_lines("mooncake_synthetic")[:800]
    trace = [line["hash_ids"] for line in lines]
    curve = hit_curve([requests(trace)], block_tokens=BLOCK_TOKENS)
    for capacity in (1, 300, 5_000, 20_000):
        blocks, tokens = hits_of_a_cache(trace, capacity)
        assert curve.shares(capacity) == (blocks / curve.blocks, tokens / curve.input_tokens)


def recorded(name: str) -> HitCurve:
    lines = recorded_lines(name)
    trace = requests([line["hash_ids"] for line in lines])
    inputs = np.asarray([line["input_length"] for line in lines])
    return hit_curve([Requests(trace.blocks, trace.counts, inputs)], block_tokens=BLOCK_TOKENS)


def recorded_lines(name: str) -> list[dict[str, list[int]]]:
    path = TRACES / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"{name}.jsonl, a trace that is not part of the project, is not beside it")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
