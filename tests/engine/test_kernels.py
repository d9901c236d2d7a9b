"""Kernel forms, recovered from tables that the forms themselves made, with and without spoilt rows."""

import numpy as np
import pytest

from costsvc.engine.kernels import (
    Vector,
    fit_all_reduce,
    fit_decode_attention,
    fit_matrices,
    fit_prefill_attention,
)

RNG = np.random.default_rng(20261129)


def spoilt(seconds: Vector, share: float) -> Vector:
    """Some rows measured without graphs: a floor of 200 microseconds."""
    wrong = RNG.random(seconds.size) < share
    return np.where(wrong, seconds + 2e-4, seconds)


@pytest.mark.parametrize("wrong_share", [0.0, 0.1])
def test_matrix_products_give_back_their_shares(wrong_share: float) -> None:
    tokens = np.tile(2.0 ** np.arange(14), 40)
    weights = np.repeat(np.geomspace(1e7, 1e9, 40), 14)
    compute_s, memory_s = 2 * tokens * weights / 1e15, 2 * weights / 3e12
    seconds = np.hypot(compute_s / 0.7 * (1 + 30 / tokens), memory_s / 0.8) + 5e-6
    found = fit_matrices(compute_s, memory_s, tokens, spoilt(seconds, wrong_share))
    assert found.values[:2] == pytest.approx((0.7, 0.8), rel=0.05)
    if not wrong_share:
        assert found.values == pytest.approx((0.7, 0.8, 30.0, 5e-6), rel=1e-3)


def test_decode_attention_gives_back_bandwidth_and_floor() -> None:
    ideal_s = np.geomspace(1e-7, 1e-3, 200)
    found = fit_decode_attention(ideal_s, ideal_s / 0.8 + 9e-6)
    assert found.values == pytest.approx((0.8, 9e-6), rel=1e-3)
    assert found.scatter_ratio < 1e-3


def test_prefill_attention_gives_back_its_ramp() -> None:
    visible = np.geomspace(100, 50_000, 30)
    found = fit_prefill_attention(0.7 * visible / (visible + 1_500), visible)
    assert found.values == pytest.approx((0.7, 1_500), rel=1e-3)


def test_an_all_reduce_gives_back_rate_and_latency() -> None:
    ideal_s = np.geomspace(1e-7, 1e-3, 50)
    assert fit_all_reduce(ideal_s, ideal_s / 0.3 + 7e-6).values == pytest.approx((0.3, 7e-6), rel=1e-3)


def test_no_share_of_a_peak_exceeds_it() -> None:
    ideal_s = np.geomspace(1e-6, 1e-3, 50)
    assert fit_decode_attention(ideal_s, ideal_s / 1.3).values[0] <= 1.0
