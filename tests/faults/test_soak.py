"""A few seconds of the soak: every kind of request it makes is answered. `make soak` takes ten minutes."""

from pathlib import Path

import pytest

from tests.faults.soak import Soaked, soak

SECONDS = 3.0


def test_mixed_load_brings_no_fault(tmp_path: Path) -> None:
    seen = soak(SECONDS, tmp_path)
    assert seen.faults == 0, seen.answers
    assert seen.answers[200] > 0
    assert min(seen.memory_bytes) > 0


def test_memory_that_grows_is_seen() -> None:
    answered = list(range(0, 8000, 200))
    assert Soaked(memory_bytes=[10**8] * 40, answered=answered).is_well
    assert Soaked(memory_bytes=[100] * 40).grown_ratio == 1
    assert Soaked(memory_bytes=list(range(100, 140))).grown_ratio > 1.05
    leaking = Soaked(memory_bytes=[10**9 + 5000 * count for count in answered], answered=answered)
    assert leaking.grown_ratio < 1.05
    assert leaking.grown_bytes_per_answer == pytest.approx(5000)
    assert not leaking.is_well
    fresh = [count // 8 for count in answered]
    assert Soaked(memory_bytes=leaking.memory_bytes, answered=fresh).grown_bytes_per_answer == 0
