"""A few odd inputs for every reader; `make fuzz` tries a hundred thousand."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.guard import TookTooLong, bounded_time
from tests.fuzz.odd import altered, changed
from tests.fuzz.targets import TARGETS, Target, refuses, warm

SAMPLE = 40


@pytest.fixture(scope="module", autouse=True)
def warmed() -> None:
    """The compiler has done its work before any time is taken."""
    warm()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_odd_inputs_are_answered_or_refused_in_words(target: Target) -> None:
    refused: list[bool] = []

    @settings(
        max_examples=SAMPLE,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    @given(target.inputs())
    def every(given_: Any) -> None:
        with bounded_time():
            refused.append(refuses(target, given_))

    every()
    assert len(refused) >= SAMPLE // 2


def test_a_reader_that_does_not_end_is_found() -> None:
    def endless(_: object) -> None:
        while True:
            pass

    target = Target("endless", st.none, endless, 1)
    with pytest.raises(TookTooLong), bounded_time(0.05):
        refuses(target, None)


def test_what_is_no_refusal_passes_through() -> None:
    def broken(given_: object) -> None:
        raise KeyError(given_)

    with pytest.raises(KeyError):
        refuses(Target("broken", st.none, broken, 1), "x")


@settings(max_examples=50, derandomize=True, deadline=None)
@given(changed([b"0123456789"]), altered([{"a": {"b": [1, 2]}}]))
def test_inputs_are_bytes_and_objects(raw: bytes, whole: dict[str, Any]) -> None:
    assert isinstance(raw, bytes)
    assert isinstance(whole, dict)
