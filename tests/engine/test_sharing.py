"""Che's approximation against caches that are run on drawn traces, and its laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costsvc.engine.sharing import (
    Documents,
    Sharing,
    SharingProfile,
    compile_sharing,
    found_tokens,
    held_tokens,
    reuse_of,
    zipf_groups,
)
from costsvc.engine.trace import hit_curve
from costsvc.errors import InvalidRequest
from tests.engine.simulated import BLOCK_TOKENS, drawn_trace

OUTPUT_TOKENS = 160
TIMES_S = np.geomspace(1e-2, 1e7, 4000)

CHAT = SharingProfile(system_tokens=640, system_share=1.0, turns=5, think_s=60)
SEVERAL_PROMPTS = SharingProfile(
    system_tokens=1600, system_share=0.5, more_prompts=((3200, 0.3), (800, 0.1)), turns=2, think_s=30
)
RETRIEVAL = SharingProfile(
    system_tokens=320,
    system_share=1.0,
    turns=1,
    think_s=60,
    documents=Documents(count=3000, tokens=1600, share=1.0, zipf_exponent=0.9),
)
LONG_DOCUMENT = SharingProfile(
    system_tokens=160,
    system_share=1.0,
    turns=4,
    think_s=120,
    documents=Documents(count=500, tokens=3200, share=0.8, zipf_exponent=0.6),
)
AGENT = SharingProfile(system_tokens=1600, system_share=1.0, turns=2, think_s=180, steps=8, step_pause_s=6)
PROFILES = [
    pytest.param(CHAT, 320, 4.0, 3000, id="chat"),
    pytest.param(SEVERAL_PROMPTS, 320, 4.0, 5000, id="several prompts"),
    pytest.param(RETRIEVAL, 160, 4.0, 12_000, id="retrieval"),
    pytest.param(LONG_DOCUMENT, 160, 2.0, 5000, id="long document"),
    pytest.param(AGENT, 320, 4.0, 700, id="agent"),
]


def compiled(profile: SharingProfile, new_tokens: int) -> tuple[Sharing, float]:
    """The profile whose requests each add so many tokens, and its mean prompt."""
    documents = profile.documents.tokens * profile.documents.share if profile.documents else 0.0
    shared = profile.system_tokens * profile.system_share + documents
    shared += sum(tokens * share for tokens, share in profile.more_prompts)
    calls = profile.calls
    prompt = shared + new_tokens * (calls + 1) / 2 + OUTPUT_TOKENS * (calls - 1) / 2
    return compile_sharing(profile, prompt, OUTPUT_TOKENS), prompt


@pytest.mark.parametrize(("profile", "new_tokens", "rate", "sessions"), PROFILES)
def test_approximated_hits_are_within_two_points_of_a_cache_that_is_run(
    profile: SharingProfile, new_tokens: int, rate: float, sessions: int
) -> None:
    drawn = drawn_trace(
        profile, new_tokens=new_tokens, output_tokens=OUTPUT_TOKENS, requests_per_s=rate, sessions=sessions
    )
    curve = hit_curve([drawn.requests], block_tokens=BLOCK_TOKENS)
    sharing, prompt = compiled(profile, new_tokens)
    held = held_tokens(sharing, TIMES_S, rate, 0.0)
    found, _ = found_tokens(sharing, TIMES_S, rate, 0.0)
    # Not so large that the trace is too short to fill it.
    for capacity in curve.distinct_blocks * np.asarray([0.005, 0.02, 0.05, 0.1]):
        approximated = np.interp(capacity * BLOCK_TOKENS, held, found) / prompt
        _, run = curve.shares(capacity)
        assert approximated == pytest.approx(run, abs=0.02), capacity


@settings(deadline=None)
@given(
    profile=st.sampled_from([CHAT, SEVERAL_PROMPTS, RETRIEVAL, LONG_DOCUMENT, AGENT]),
    rate=st.floats(1e-3, 1e3),
)
def test_longer_retention_holds_more_and_finds_more_but_never_all(
    profile: SharingProfile, rate: float
) -> None:
    sharing, prompt = compiled(profile, 480)
    held = held_tokens(sharing, TIMES_S, rate, 0.0)
    found, shared = found_tokens(sharing, TIMES_S, rate, 0.0)
    assert np.all(np.diff(held) > 0)
    assert np.all(np.diff(found) >= -1e-9)
    assert np.all(shared <= found + 1e-9)
    assert found[-1] < prompt


def test_a_running_request_keeps_its_prompt_for_the_next_one() -> None:
    sharing, _ = compiled(RETRIEVAL, 160)
    alone, beside_long_ones = (found_tokens(sharing, 0.0, 10.0, residence)[0] for residence in (0.0, 5.0))
    assert alone == 0
    assert beside_long_ones > 300


def test_many_documents_are_as_popular_in_groups_as_one_by_one() -> None:
    ranks = np.arange(1.0, 100_001) ** -0.8
    popularity, copies = zipf_groups(100_000, 0.8)
    assert len(popularity) < 150
    assert popularity[0] == pytest.approx(ranks[0] / ranks.sum(), rel=1e-4)
    rates = 300.0
    exactly = -np.expm1(-rates * ranks / ranks.sum()).sum()
    assert copies @ -np.expm1(-rates * popularity) == pytest.approx(exactly, rel=1e-3)


def test_a_history_longer_than_its_prompt_is_refused_with_the_most_turns() -> None:
    profile = SharingProfile(system_tokens=0, system_share=1, turns=10, think_s=60)
    with pytest.raises(InvalidRequest, match="at most") as refused:
        reuse_of(profile, 1000, 500)
    most = float(refused.value.message.rstrip(".").rpartition(" ")[2])
    reuse_of(SharingProfile(system_tokens=0, system_share=1, turns=most - 0.1, think_s=60), 1000, 500)
