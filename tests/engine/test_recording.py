"""Recorded formulas against the same formulas on arrays, and what no tape can play."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from costsvc.engine import rows as rows_module
from costsvc.engine.loop import plan_loop
from costsvc.engine.memory import Lengths, memory_budget, one_sequence_bytes, sequence_bytes
from costsvc.engine.recording import NotRecordable, Recorder
from costsvc.engine.replica import compile_replica
from costsvc.engine.rows import concurrency_limits
from costsvc.engine.search import LIMITS
from costsvc.engine.serving import solution
from costsvc.engine.specs import Objectives
from tests.engine.shapes import one, served
from tests.engine.test_formulas import MODELS

POINTS = 300
"""More than are played together."""


def lengths() -> Lengths:
    random = np.random.default_rng(5)
    uncached, cached = np.exp(random.uniform(0.0, 11.0, (2, POINTS)))
    return Lengths(
        uncached=uncached,
        cached=cached,
        output=np.exp(random.uniform(0.0, 8.0, POINTS)),
        shared=cached * random.choice([0.0, 0.5], POINTS),
        input_cv=1.5,
        output_cv=0.7,
        context_limit=np.full(POINTS, 4_096.0),
        prompt_unit=uncached * random.choice([1.0, 2.0], POINTS),
        length_correlation=0.2,
    )


def same(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal but for the last digit or two; pytest's own comparison would look at each of a million numbers in turn."""
    np.testing.assert_allclose(found, expected, rtol=1e-14, equal_nan=True)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "deployment",
    [{}, {"mode": "disaggregated"}, {"kv_cache": False}, {"allocation": "contiguous"}],
    ids=["colocated", "disaggregated", "no-cache", "contiguous"],
)
def test_a_tape_plays_what_the_formulas_say_of_arrays(model: str, deployment: dict[str, Any]) -> None:
    single = served(model, "h200-sxm", **deployment)
    layouts_of = [replace(single.deployments[0], tp=tp) for tp in (1, 2, 8)]
    every = compile_replica(single.model, single.gpu, single.calibration, layouts_of)
    asked = lengths()
    budget = memory_budget(every)
    limits = [np.asarray(limit) for limit in concurrency_limits(every, asked, budget).values()]
    for replica, layouts in ((every, slice(None)), (every.only(1), slice(1, 2))):
        before, rows = (solution(replica, asked, Objectives(), 0.8).plan.rows for _ in range(2))
        same(rows, before)
        same(rows[..., :-LIMITS], plan_loop(every, asked, 0.8).rows[layouts])
        for place, limit in enumerate(limits):
            same(rows[..., place - LIMITS], np.broadcast_to(limit, (3, POINTS))[layouts])
        assert len(limits) == LIMITS or np.isinf(rows[..., -1]).all()


def test_a_case_is_recorded_when_it_is_asked_for_again_and_its_layouts_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded: list[int] = []

    class Counted(Recorder):
        def __init__(self, inputs: int, layouts: int) -> None:
            super().__init__(inputs, layouts)
            recorded.append(layouts)

    monkeypatch.setattr(rows_module, "Recorder", Counted)
    single = served("llama-3-70b", "h200-sxm")
    layouts_of = [replace(single.deployments[0], tp=tp) for tp in (4, 8)]
    every = compile_replica(single.model, single.gpu, single.calibration, layouts_of)
    counts = []
    for is_part in (False, False, False, True, True):
        solution(every.only(1) if is_part else every, lengths(), Objectives(), 0.8)
        counts.append(list(recorded))
    assert counts == [[], [2], [2], [2], [2]]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kv_cache", [True, False])
def test_the_cache_of_one_layout_needs_no_arrays(*, model: str, kv_cache: bool) -> None:
    replica = served(model, "h200-sxm", tp=8, kv_cache=kv_cache)
    for tokens in (1.0, 900.0, 50_000.0):
        assert one_sequence_bytes(replica, tokens) == pytest.approx(one(sequence_bytes(replica, tokens)))


def test_equal_work_is_recorded_once_and_neutral_work_never() -> None:
    recorder = Recorder(inputs=2, layouts=3)
    first, second = recorder.symbols
    column = np.asarray([[1.0], [2.0], [3.0]])
    row = [first * column + second, first * column + second, first * 1.0 + 0.0, 0.0 * first, column * 2.0]
    tape = recorder.tape(row)
    assert len(tape.operations) == 2
    inputs = np.asarray([[[5.0]] * 3, [[7.0]] * 3])
    expected = [[12.0, 12.0, 5.0, 0.0, 2.0], [17.0, 17.0, 5.0, 0.0, 4.0], [22.0, 22.0, 5.0, 0.0, 6.0]]
    assert tape.play(inputs)[:, 0].tolist() == expected
    assert tape.some([2]).play(inputs[:, :1])[:, 0].tolist() == expected[2:]


def test_registers_are_used_again() -> None:
    recorder = Recorder(inputs=1, layouts=1)
    (value,) = recorder.symbols
    for _ in range(50):
        value = np.sqrt(value + 1.0)
    assert recorder.tape([value]).registers <= 4


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (lambda x: np.where(x < 2.0, x, 2.0), [1.0, 2.0, 2.0]),
        (lambda x: (x <= 2.0) + 2.0 * (x >= 2.0), [1.0, 3.0, 2.0]),
        (lambda x: -(x**3), [-1.0, -8.0, -27.0]),
        (lambda x: np.maximum(np.floor(x / 2.0), np.minimum(x, 0.5)), [0.5, 1.0, 1.0]),
        (lambda x: np.exp(-np.log1p(x - 1.0)), [1.0, 0.5, 1.0 / 3.0]),
    ],
)
def test_functions_mean_what_they_mean_of_arrays(formula: Any, expected: list[float]) -> None:
    recorder = Recorder(inputs=1, layouts=1)
    values = np.asarray([1.0, 2.0, 3.0])
    played = recorder.tape([formula(recorder.symbols[0])]).play(values.reshape(1, 1, 3))[0, :, 0]
    assert played.tolist() == pytest.approx(expected)
    assert played.tolist() == pytest.approx(np.asarray(formula(values), dtype=float).tolist())


@pytest.mark.parametrize(
    "formula",
    [
        lambda x: 1.0 if x > 2.0 else 0.0,
        np.sin,
        np.sum,
        lambda x: x**0.5,
        np.add.reduce,
        lambda x: np.add(x, 1.0, where=False),
    ],
)
def test_what_no_tape_can_play_is_refused(formula: Any) -> None:
    with pytest.raises(NotRecordable):
        formula(Recorder(inputs=1, layouts=1).symbols[0])
