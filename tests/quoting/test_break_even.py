"""Buying against running: the traffic at which own replicas cost less."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costsvc.quoting.launch.offers import break_even

POSITIVE = st.floats(0.1, 10)


def own_is_dearer(rps: float, api: float, replica: float, carries: float) -> bool:
    return math.ceil(rps / carries - 1e-12) * replica > rps * api * (1 + 1e-9)


@given(api=POSITIVE, replica=POSITIVE, carries=POSITIVE)
def test_break_even_is_where_whole_replicas_stop_costing_more(
    api: float, replica: float, carries: float
) -> None:
    found = break_even(api, replica, carries)
    if found is None:
        assert all(own_is_dearer(carries * k / 7, api, replica, carries) for k in range(1, 200))
        return
    first, for_good = found
    assert own_is_dearer(first * 0.999, api, replica, carries)
    assert not own_is_dearer(first, api, replica, carries)
    if for_good / carries < 1000:
        beyond = [for_good * (1.0001 + step / 50) for step in range(400)]
        assert not any(own_is_dearer(rps, api, replica, carries) for rps in beyond)
        last = round(for_good / first)
        between = ((last - 1) * carries + for_good) / 2
        assert own_is_dearer(between, api, replica, carries) or for_good - between < 1e-6 * for_good


def test_a_replica_that_cannot_earn_its_price_is_never_cheaper() -> None:
    assert break_even(1.0, 10.0, 9.9) is None
    assert break_even(1.0, 10.0, 20.0) == pytest.approx((10.0, 10.0))
