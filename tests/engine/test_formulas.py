"""The compiled loop and its search against the same formulas on arrays: every kind of model and both modes."""

from dataclasses import replace

import numpy as np
import pytest

from costsvc.engine import ray, search, tape
from costsvc.engine.formulas import queue_factor
from costsvc.engine.loop import loop_batch, plan_loop, run_loop, step_token_limit
from costsvc.engine.ready import make_ready
from costsvc.engine.serving import lengths_of, solution, solve, solve_together
from costsvc.engine.specs import Objectives
from costsvc.engine.step import step_time
from tests.engine.shapes import requests, served

MODELS = (
    "llama-3-70b",
    "gemma-3-27b",
    "llama-4-scout",
    "deepseek-v3.2",
    "deepseek-v4-flash",
    "qwen3-next-80b-a3b",
    "gpt-oss-120b",
)
SEQUENCES = np.asarray([[1.0, 7.5, 64.0, 900.0]])
LENGTHS = lengths_of(requests(4_000, 500, cached=1_000))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kv_cache", [True, False])
def test_a_compiled_step_is_the_sum_of_its_terms(*, model: str, kv_cache: bool) -> None:
    replica = served(model, tp=8, kv_cache=kv_cache)
    loop = plan_loop(replica, LENGTHS, 0.8).at(SEQUENCES)
    for step_s, prefill in ((loop.decode_step_s, 0.0), (loop.mixed_step_s, loop.mixed_prefill)):
        terms = step_time(replica, loop_batch(replica, LENGTHS, SEQUENCES, prefill))
        assert step_s == pytest.approx(np.asarray(terms.total_s), rel=1e-12)


def test_a_compiled_loop_mixes_and_waits_as_its_formulas_say() -> None:
    replica = served("llama-3-70b", tp=8)
    loop = run_loop(replica, LENGTHS, SEQUENCES, 0.8)
    room = step_token_limit(replica) - SEQUENCES
    share = np.minimum(LENGTHS.uncached * SEQUENCES / LENGTHS.output / loop.mixed_prefill, 1.0)
    step_s = share * loop.mixed_step_s + (1 - share) * loop.decode_step_s
    prompt_s = np.maximum(LENGTHS.uncached / room, 1.0) * loop.mixed_step_s
    arriving = LENGTHS.uncached * SEQUENCES / LENGTHS.output
    load_share = 0.8 * arriving / room * loop.mixed_step_s / step_s
    together = room / np.minimum(LENGTHS.uncached, room)
    waits_s = queue_factor(load_share, SEQUENCES) / together * prompt_s
    assert loop.step_s == pytest.approx(step_s, rel=1e-12)
    ttft_s = replica.calibration.ttft_floor_s + step_s / 2 + waits_s + prompt_s
    assert loop.ttft_s == pytest.approx(ttft_s, rel=1e-12)


@pytest.mark.parametrize("mode", ["colocated", "disaggregated"])
@pytest.mark.parametrize("latency", ["tpot_s", "ttft_s"])
def test_the_search_ends_where_the_objective_is_just_kept(mode: str, latency: str) -> None:
    replica = served("llama-3-70b", tp=8, mode=mode)
    measured = {"tpot_s": "step_s", "ttft_s": "ttft_s"}[latency]
    most = solve(replica, LENGTHS, Objectives(), 0.8)
    slowest, fastest = (
        float(getattr(run_loop(replica, LENGTHS, sequences, 0.8), measured)[0, 0])
        for sequences in (most.sequences, np.ones((1, 1)))
    )
    limit_s = (slowest + fastest) / 2
    state = solve(replica, LENGTHS, Objectives(**{latency: limit_s}), 0.8)
    more = run_loop(replica, LENGTHS, state.sequences * (1 + 1e-6), 0.8)
    assert 1 < float(state.sequences[0, 0]) < float(most.sequences[0, 0])
    assert getattr(state.loop, measured) == pytest.approx(limit_s, rel=1e-10)
    assert getattr(more, measured) > limit_s


def signatures() -> dict[str, int]:
    compiled = (one for part in (ray, search, tape) for one in vars(part).items())
    return {name: len(one.signatures) for name, one in compiled if hasattr(one, "signatures")}


def test_what_is_made_ready_is_what_quotes_run() -> None:
    make_ready()
    before = signatures()
    for model, parallel in (
        ("llama-3-70b", {"tp": 8}),
        ("deepseek-v3.2", {"tp": 8, "mode": "disaggregated"}),
    ):
        solve(served(model, **parallel), LENGTHS, Objectives(tpot_s=0.05), 0.8)
        solve_together(served(model, **parallel), [LENGTHS, LENGTHS], Objectives(tpot_s=0.05), 0.8)
    assert signatures() == before


def test_what_is_ready_is_never_compiled_for_other_types() -> None:
    make_ready()
    with pytest.raises(TypeError, match="No matching definition"):
        ray.moves_of("text")  # type: ignore[arg-type]


def test_what_was_compiled_is_stale_where_a_formula_that_it_calls_has_changed() -> None:
    def files(of: object) -> set[object]:
        stamp = of._cache._cache_file._source_stamp  # type: ignore[attr-defined]
        return leaves(stamp)

    def leaves(stamp: object) -> set[object]:
        return set().union(*map(leaves, stamp)) if isinstance(stamp, tuple) else {stamp}

    assert files(search.most_sequences) > files(search._rows_s)


@pytest.mark.parametrize("model", ["llama-3-70b", "deepseek-v3.2"])
@pytest.mark.parametrize("objectives", [Objectives(tpot_s=0.05), Objectives(tpot_s=0.08, ttft_s=2.0)])
def test_a_search_that_starts_at_its_neighbour_ends_where_one_from_nothing_does(
    model: str, objectives: Objectives
) -> None:
    replica = served(model, "h200-sxm", tp=8)
    shares = np.append(np.geomspace(1e-3, 30.0, 60), [1.0, 1.001, 0.999])
    along = replace(LENGTHS, uncached=4_000 * shares, cached=1_000 * shares, output=500 * shares)
    together = solution(replica, along, objectives, 0.8)
    places = (slice(place, place + 1) for place in range(len(shares)))
    alone = [together.some(slice(None), place).plan for place in places]
    found = [float(plan.most(objectives)[0, 0, 0]) for plan in alone]
    ceilings = np.min(list(together.limits.values()), axis=0)
    assert np.count_nonzero(together.sequences < ceilings) > 5
    assert together.sequences[0] == pytest.approx(found, rel=1e-11, nan_ok=True)
