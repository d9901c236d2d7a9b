"""Length distributions by their moments, and keeping by its lower envelope."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costsvc.engine.keeping import Keeping, cheapest_keeping
from costsvc.engine.moments import quantile_moments, sample_moments


def test_fine_quantiles_of_a_lognormal_have_its_moments() -> None:
    rng = np.random.default_rng(1)
    lengths = np.sort(np.exp(rng.normal(7.0, 0.8, 200_000)))
    shares = np.linspace(0.0, 0.9999, 2001)
    mean, cv = quantile_moments(shares, np.quantile(lengths, shares))
    assert mean == pytest.approx(lengths.mean(), rel=0.01)
    assert cv == pytest.approx(lengths.std() / lengths.mean(), rel=0.03)


def test_weights_of_a_histogram_count_like_repeated_requests() -> None:
    prompts, outputs = np.asarray([100.0, 900.0]), np.asarray([50.0, 10.0])
    weighted = sample_moments(prompts, outputs, np.asarray([0.75, 0.25]))
    repeated = sample_moments(np.repeat(prompts, [3, 1]), np.repeat(outputs, [3, 1]), np.ones(4))
    assert weighted.input_tokens == repeated.input_tokens == 300
    assert weighted.input_cv == pytest.approx(repeated.input_cv)
    assert weighted.length_correlation == pytest.approx(-1.0)


ways = st.lists(
    st.tuples(st.floats(0, 1e3), st.floats(0, 1e3)), min_size=1, max_size=6, unique_by=lambda way: way[1]
).map(lambda pairs: [Keeping(name=str(n), once_usd=a, rent_usd_per_s=b) for n, (a, b) in enumerate(pairs)])


@given(ways=ways, time_s=st.floats(0, 1e4))
def test_no_way_is_cheaper_than_the_one_named_for_a_time(ways: list[Keeping], time_s: float) -> None:
    pieces = cheapest_keeping(ways)
    assert pieces[0][1] == 0
    assert pieces[-1][2] is None
    assert [end for _, _, end in pieces[:-1]] == [start for _, start, _ in pieces[1:]]
    named = next(name for name, start, end in pieces if start <= time_s and (end is None or time_s <= end))
    cheapest = min(way.usd_after(time_s) for way in ways)
    assert ways[int(named)].usd_after(time_s) == pytest.approx(cheapest, rel=1e-6, abs=1e-6)
