"""Medians and tails against the means they are made from."""

from dataclasses import replace

import numpy as np
import pytest

from costsvc.db.snapshot import Catalog
from costsvc.engine.attention import FullAttention
from costsvc.engine.attention.evicting import EvictingAttention
from costsvc.engine.loop import run_loop
from costsvc.engine.quantiles import tpot_quantiles_s, ttft_quantiles_s
from costsvc.quoting.evaluate import Evaluated, evaluate
from costsvc.quoting.request import parse_request
from tests.docs.refresh import DAY, shipped_catalog

PLACES = tuple((np.arange(400) + 0.5) / 400)


@pytest.fixture(scope="module")
def running() -> Evaluated:
    catalog: Catalog = shipped_catalog()
    return evaluate(catalog, parse_request({"model": "llama-3-8b", "gpu": "a100-80gb", "ctx": 8192}), DAY)


@pytest.mark.parametrize("cv", [0.0, 0.7])
def test_the_mean_of_all_quantiles_is_the_mean_of_the_loop(running: Evaluated, cv: float) -> None:
    choice = running.choice
    lengths = replace(choice.lengths, input_cv=cv, context_limit=1e6)
    loop = run_loop(choice.replica, lengths, choice.state.sequences, 0.8)
    state = replace(choice.state, loop=loop)
    quantiles = ttft_quantiles_s(choice.replica, lengths, state, 0.8, PLACES)
    assert np.mean(quantiles) == pytest.approx(float(loop.ttft_s[0, 0]), rel=0.05)
    assert list(quantiles) == sorted(quantiles)


def test_lengths_that_spread_make_the_tail_longer(running: Evaluated) -> None:
    choice = running.choice
    equal, spread = (
        ttft_quantiles_s(
            choice.replica,
            replace(choice.lengths, input_cv=cv, context_limit=1e6),
            choice.state,
            0.8,
            (0.95,),
        )[0]
        for cv in (0.0, 1.0)
    )
    assert spread > 1.5 * equal


def test_half_of_the_requests_are_as_fast_as_the_mean_and_few_much_slower(running: Evaluated) -> None:
    choice = running.choice
    median, tail = tpot_quantiles_s(choice.replica, choice.lengths, choice.state, (0.5, 0.95))
    assert median == pytest.approx(float(choice.state.loop.step_s[0, 0]))
    assert median < tail < float(choice.state.loop.mixed_step_s[0, 0])


def test_eviction_keeps_a_share_of_the_cache_and_all_of_the_prefill() -> None:
    full = FullAttention(query_heads=64, kv_heads=8, head_dim=128)
    kept = EvictingAttention(query_heads=64, kv_heads=8, head_dim=128, kept_share=0.25)
    assert kept.kv_values(1000.0) == full.kv_values(1000.0) / 4
    assert kept.read_values(1000.0, 1000.0) == full.read_values(1000.0, 1000.0) / 4
    assert kept.decode_flops(1000.0, 1000.0) == full.decode_flops(1000.0, 1000.0) / 4
    assert kept.prefill_flops(1000.0, 1000.0) == full.prefill_flops(1000.0, 1000.0)
    assert kept.sharded_parameters(8192) == full.sharded_parameters(8192)
