"""Loads of benchmarks: arrivals, users in a loop, and a prefill pool that lets only so many decode."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from costsvc.engine.loads import FirstToken, Served, serve
from costsvc.engine.loop import prompt_s, run_loop
from costsvc.engine.replica import Replica
from costsvc.engine.serving import GIVEN, lengths_of
from costsvc.quoting.predict import offered_load
from tests.engine.shapes import one, requests, served

TRAFFIC = requests(2_000, 200)
LENGTHS = lengths_of(TRAFFIC)


def run(replica: Replica, mode: str, **load: Any) -> Served:
    return serve(replica, LENGTHS, offered_load(mode, **load))


@pytest.mark.parametrize("rps", [0.01, 1.0, 4.0])
def test_arrivals_that_are_met_leave_as_fast_as_they_come(rps: float) -> None:
    found = run(served("llama-3-70b", tp=4), "server", rps=rps)
    assert one(found.output_tokens_per_s) == pytest.approx(rps * 200)
    assert one(found.sequences) == pytest.approx(rps * 200 * one(found.tpot_s), rel=1e-6)
    assert int(found.bound[0, 0]) == GIVEN


def test_no_more_leave_than_the_deployment_can_serve() -> None:
    replica = served("llama-3-70b", tp=4)
    most = run(replica, "server", rps=1e6)
    assert one(most.output_tokens_per_s) < 1e6 * 200
    assert one(most.output_tokens_per_s) == pytest.approx(
        one(run(replica, "server", rps=1e7).output_tokens_per_s)
    )
    assert int(most.bound[0, 0]) != GIVEN


def test_arrivals_of_few_in_flight_are_a_loop_of_those() -> None:
    replica = served("llama-3-70b", tp=4)
    loop = run(replica, "continuous", concurrency=8.0)
    busy = run(replica, "server", rps=1e3, concurrency=8.0)
    assert one(busy.output_tokens_per_s) == pytest.approx(one(loop.output_tokens_per_s))
    idle = run(replica, "server", rps=0.1, concurrency=8.0)
    assert one(idle.output_tokens_per_s) == pytest.approx(20.0)


def test_a_prefill_pool_passes_on_only_what_it_prefills() -> None:
    replica = served("llama-3-70b", "h200-sxm", tp=4, mode="disaggregated")
    ample, scarce = (run(replica, "continuous", concurrency=256.0, prefill_ratio=r) for r in (64.0, 0.1))
    assert one(scarce.output_tokens_per_s) < one(ample.output_tokens_per_s)
    assert one(scarce.tpot_s) < one(ample.tpot_s)
    assert one(scarce.ttft_s) > one(ample.ttft_s)
    in_flight = one(scarce.output_tokens_per_s) / 200 * (one(scarce.ttft_s) + 200 * one(scarce.tpot_s))
    assert in_flight == pytest.approx(256.0, rel=0.02)


def test_twice_the_prefill_pool_passes_on_twice_as_much() -> None:
    replica = served("llama-3-70b", "h200-sxm", tp=4, mode="disaggregated")
    rates = [
        one(run(replica, "continuous", concurrency=256.0, prefill_ratio=ratio).output_tokens_per_s)
        for ratio in (0.05, 0.1)
    ]
    assert rates[1] == pytest.approx(2 * rates[0], rel=0.02)


def test_loads_side_by_side_are_served_as_alone() -> None:
    replica = served("llama-3.1-8b")
    rates = [0.5, 5.0, 1e5]
    alone = [one(run(replica, "server", rps=rps).output_tokens_per_s) for rps in rates]
    first = offered_load("server", rps=1.0)
    together = serve(replica, LENGTHS, replace(first, rps=np.asarray([rates])))
    assert together.output_tokens_per_s[0] == pytest.approx(alone, rel=1e-6)


def _flood(least: float) -> tuple[Served, Served]:
    """A flood of so many requests, and a loop that never ends."""
    replica = served("llama-3.1-8b")
    calibration = replace(replica.calibration, flood_tokens=1.0, flood_least_sequences=least)
    replica = replace(replica, calibration=calibration)
    flood = serve(replica, LENGTHS, offered_load("offline-maxthroughput"))
    return flood, serve(replica, LENGTHS, offered_load("continuous"))


def test_a_flood_has_no_more_in_flight_than_it_queues() -> None:
    few, endless = _flood(20.0)
    assert one(few.sequences) == pytest.approx(20.0)
    assert int(few.bound[0, 0]) == GIVEN
    assert one(endless.sequences) > 20.0


def test_the_last_wave_of_a_flood_is_part_full_and_a_long_flood_does_not_see_it() -> None:
    shares = []
    slots = one(_flood(1e9)[1].sequences)
    for waves in (1.0, 1.5, 4.0, 1e4):
        flood, endless = _flood(waves * slots)
        shares.append(one(flood.output_tokens_per_s) / one(endless.output_tokens_per_s))
    alone, part, four, many = shares
    assert alone == pytest.approx(1.0)
    assert 0.5 < part < four < many == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(("wave_share", "waited"), [(0.5, 4.5), (1.0, 8.0)])
def test_a_mean_prompt_of_a_wave_waits_for_half_the_others_or_for_all(
    wave_share: float, waited: float
) -> None:
    replica = served("llama-3-70b", tp=4)
    replica = replica.under(replace(replica.calibration, ttft_wave_share=wave_share))
    lengths = lengths_of(requests(8_192, 100))  # a whole step each
    found = serve(replica, lengths, offered_load("static", concurrency=8.0))
    alone_s = one(prompt_s(replica, lengths, lengths.uncached))
    assert one(found.ttft_s) == pytest.approx(waited * alone_s)


def test_a_wave_of_one_waits_for_nobody() -> None:
    replica = served("llama-3-70b", tp=4)
    found = run(replica, "static", concurrency=1.0)
    assert one(found.ttft_s) == pytest.approx(one(prompt_s(replica, LENGTHS, LENGTHS.uncached)))


def test_first_tokens_of_a_loop_wait_for_steps_and_for_the_others() -> None:
    replica = served("llama-3-70b", tp=4)
    calibration = replica.calibration
    loop = run_loop(replica, LENGTHS, np.asarray([[16.0]]), 1.0)

    def mean_s(inside: float, **changes: Any) -> float:
        changed = replica.under(replace(calibration, **changes))
        return one(FirstToken(changed, LENGTHS).mean_s(loop, np.asarray([[inside]])))

    steps = calibration.ttft_steps_ratio
    assert mean_s(16.0, ttft_steps_ratio=steps + 2) - mean_s(16.0) == pytest.approx(2 * one(loop.step_s))
    alone_s = calibration.ttft_floor_s + steps * one(loop.step_s)
    alone_s += calibration.ttft_prompt_ratio * one(prompt_s(replica, LENGTHS, LENGTHS.uncached))
    assert mean_s(1.0) == pytest.approx(alone_s)
    others_s = mean_s(16.0) - mean_s(1.0)
    assert mean_s(31.0) - mean_s(16.0) == pytest.approx(others_s)
    assert others_s < 15 * calibration.ttft_burst_share * one(prompt_s(replica, LENGTHS, LENGTHS.uncached))


def test_a_stack_that_holds_tokens_back_is_later_by_its_steps() -> None:
    replica = served("llama-3-70b", tp=4)
    held = replica.under(
        replace(replica.calibration, ttft_steps_ratio=replica.calibration.ttft_steps_ratio + 10)
    )
    sooner, later = (run(one_, "continuous", concurrency=8.0) for one_ in (replica, held))
    assert one(later.ttft_s) == pytest.approx(one(sooner.ttft_s) + 10 * one(later.tpot_s), rel=0.05)
