"""The closed formulas against the referee, over a grid of loads."""

from statistics import median

import numpy as np
import pytest

from costsvc.engine.prefix import meet, prefix_state
from costsvc.engine.serving import lengths_of, solution, solve
from costsvc.engine.sharing import SharingProfile, compile_sharing
from costsvc.engine.specs import Objectives, Traffic
from tests.engine.referee import Asked, Referee
from tests.engine.shapes import requests, served

BLOCK = 16
NO_OBJECTIVE = Objectives()
# Prompt, output and how much both vary: short and long, even and spread.
LOADS = [
    (1000, 150, 0.5),
    (4000, 150, 0.0),
    (4000, 150, 0.7),
    (8000, 100, 0.5),
    (2000, 250, 0.7),
    (16_000, 60, 0.3),
]


def drawn_lengths(rng: np.random.Generator, mean: float, cv: float, count: int) -> np.ndarray:
    sigma = np.sqrt(np.log1p(cv**2))
    lengths = mean * np.exp(sigma * rng.standard_normal(count) - sigma**2 / 2)
    return np.asarray(np.maximum(np.round(lengths), 1).astype(np.int64))


def saturated(prompt: float, output: float, cv: float, count: int) -> list[Asked]:
    """A queue that never ends, of prompts that nobody sent before."""
    rng = np.random.default_rng(2)
    prompts, outputs = (drawn_lengths(rng, mean, cv, count) for mean in (prompt, output))
    return [
        Asked(
            arrives_s=0.0,
            prompt_tokens=int(i),
            output_tokens=int(o),
            names=range(n * 100_000, n * 100_000 + (int(i) + int(o)) // BLOCK + 2),
        )
        for n, (i, o) in enumerate(zip(prompts, outputs, strict=True))
    ]


def throughput_ratio(prompt: int, output: int, cv: float) -> float:
    """Requests per second of the formulas over those of the referee, both at the largest batch."""
    replica = served("llama-3.1-8b")
    traffic = Traffic(
        uncached_input_tokens=prompt,
        cached_input_tokens=0.0,
        output_tokens=output,
        context_limit_tokens=prompt + output,
        input_cv=cv,
        output_cv=cv,
    )
    state = solve(replica, lengths_of(traffic), NO_OBJECTIVE, 1.0)
    batch = float(state.sequences[0, 0])
    count = int(3 * batch) + 60
    seen = Referee(replica).serve(saturated(prompt, output, cv, count), warm_up=int(1.2 * batch) + 10)
    return float(state.requests_per_s[0, 0]) / seen.requests_per_s


def test_throughput_is_within_ten_per_cent_of_the_referee_in_the_median() -> None:
    ratios = [throughput_ratio(*load) for load in LOADS]
    assert median(abs(ratio - 1.0) for ratio in ratios) < 0.10, ratios
    assert max(abs(ratio - 1.0) for ratio in ratios) < 0.25, ratios


SHARED = [
    pytest.param(
        SharingProfile(system_tokens=1024, system_share=1.0, turns=3, think_s=20), 3000, 96, id="chat"
    ),
    pytest.param(
        SharingProfile(system_tokens=2048, system_share=1.0, turns=1, think_s=20), 3000, 96, id="system"
    ),
]


def conversations(
    profile: SharingProfile, turn_tokens: float, output: int, rate: float, count: int
) -> tuple[list[Asked], float]:
    """Requests of conversations that come at a rate, and until when new ones do."""
    rng = np.random.default_rng(4)
    turns, turn, system = int(profile.turns), int(turn_tokens // BLOCK), int(profile.system_tokens // BLOCK)
    starts = np.cumsum(rng.exponential(turns / rate, count // turns))
    asked = []
    for session, start in enumerate(starts):
        now = float(start)
        own = range((session + 1) * 100_000, (session + 1) * 100_000 + turns * turn + 2)
        names = [*range(system), *own]
        for number in range(turns):
            prompt = (system + (number + 1) * turn) * BLOCK - output
            asked.append(Asked(arrives_s=now, prompt_tokens=prompt, output_tokens=output, names=names))
            now += float(rng.exponential(profile.think_s))
    return sorted(asked, key=lambda one: one.arrives_s), float(starts[-1])


@pytest.mark.parametrize(("profile", "prompt", "output"), SHARED)
def test_hits_are_within_five_points_of_the_referee(
    profile: SharingProfile, prompt: int, output: int
) -> None:
    replica = served("llama-3.1-8b")
    lengths = lengths_of(requests(prompt, output))
    sharing = compile_sharing(profile, prompt, output)
    met = meet(replica, lengths, NO_OBJECTIVE, solution(replica, lengths, NO_OBJECTIVE, 0.5), 0.5, sharing)
    state = prefix_state(replica, lengths, NO_OBJECTIVE, 0.5, sharing, meeting=met)
    asked, until_s = conversations(profile, sharing.call_tokens, output, state.requests_per_s, 2100)
    seen = Referee(replica).serve(asked, warm_up=700, until_s=until_s)
    assert seen.hit_share > 0.1
    assert state.hit_share == pytest.approx(seen.hit_share, abs=0.05)


def test_the_referee_keeps_count_of_every_block() -> None:
    referee = Referee(served("llama-3.1-8b"))
    everything = referee.blocks.room()
    referee.serve(saturated(16_000, 60, 0.3, 80), warm_up=10)
    assert not referee.blocks.users
    assert referee.blocks.room() == everything
