"""Prefix hits of a parametric profile against a small LRU that serves the same conversations."""

import heapq
from collections import OrderedDict
from dataclasses import dataclass, replace

import numpy as np
import pytest

from costsvc.engine.prefix import PrefixState, hit_tokens, meet, prefix_state
from costsvc.engine.serving import lengths_of, solution, solve
from costsvc.engine.sharing import SharingProfile, compile_sharing, found_tokens, held_tokens, reuse_of
from costsvc.engine.specs import Objectives
from costsvc.errors import InvalidRequest
from tests.engine.shapes import one, requests, served

BLOCK = 16
OBJECTIVES = Objectives(tpot_s=0.05)
CHAT = SharingProfile(system_tokens=512, system_share=1.0, turns=4, think_s=60)


@dataclass(frozen=True, slots=True)
class Lru:
    """Blocks by last use; the oldest leave when the capacity is exceeded."""

    capacity_blocks: int
    blocks: OrderedDict[tuple[int, int], None]

    def leading_hits(self, wanted: list[tuple[int, int]]) -> int:
        hits = 0
        while hits < len(wanted) and wanted[hits] in self.blocks:
            hits += 1
        return hits

    def keep(self, wanted: list[tuple[int, int]]) -> None:
        for block in reversed(wanted):
            self.blocks.pop(block, None)
            self.blocks[block] = None
        while len(self.blocks) > self.capacity_blocks:
            self.blocks.popitem(last=False)


def simulated_hit_tokens(
    profile: SharingProfile, prompt: float, output: float, requests_per_s: float, capacity_tokens: float
) -> float:
    """Mean reused tokens of a request, by serving conversations one by one."""
    random = np.random.default_rng(3)
    reuse = reuse_of(profile, prompt, output)
    turns, added = int(profile.turns), int(reuse.turn_tokens / BLOCK)
    system = int(profile.system_tokens / BLOCK)
    cache = Lru(int(capacity_tokens / BLOCK), OrderedDict())
    conversations = 1_500
    starts = np.cumsum(random.exponential(turns / requests_per_s, conversations))
    queue = [(float(start), number, 0) for number, start in enumerate(starts)]
    heapq.heapify(queue)
    hits: list[int] = []
    while queue:
        now, number, turn = heapq.heappop(queue)
        history = [(-1, block) for block in range(system)] + [
            (number, block) for block in range(turn * added)
        ]
        found = cache.leading_hits(history)
        cache.keep(history + [(number, block) for block in range(turn * added, (turn + 1) * added)])
        if number > conversations // 3:
            hits.append(found)
        if turn + 1 < turns:
            heapq.heappush(queue, (now + float(random.exponential(profile.think_s)), number, turn + 1))
    return float(np.mean(hits)) * BLOCK


@pytest.mark.parametrize(("kept_s", "think_s"), [(10.0, 60.0), (40.0, 60.0), (40.0, 20.0), (600.0, 60.0)])
def test_che_agrees_with_a_simulated_cache(kept_s: float, think_s: float) -> None:
    # Che, Tung and Wang, IEEE JSAC 20(7), 2002, eq. 3; the hit rates agree within two points.
    profile = replace(CHAT, think_s=think_s)
    prompt, output, rate = 4_000.0, 400.0, 2.0
    sharing = compile_sharing(profile, prompt, output)
    capacity = float(held_tokens(sharing, kept_s, rate, 0.0))
    found = float(found_tokens(sharing, kept_s, rate, 0.0)[0])
    simulated = simulated_hit_tokens(profile, prompt, output, rate, capacity)
    assert 0.1 < found / prompt < 0.75
    assert simulated / prompt == pytest.approx(found / prompt, abs=0.02)


def test_a_mean_prompt_is_system_history_and_news() -> None:
    # By listing the turns: prompt i has s + i u + (i - 1) O tokens, of which (i - 1)(u + O) are history.
    for turns in (1, 2, 5, 9):
        profile = replace(CHAT, turns=turns)
        reuse = reuse_of(profile, 6_000, 300)
        new = reuse.turn_tokens - 300
        prompts = [512 + i * new + (i - 1) * 300 for i in range(1, turns + 1)]
        assert np.mean(prompts) == pytest.approx(6_000)
        history = [(i - 1) * (new + 300) for i in range(1, turns + 1)]
        assert np.mean(history) == pytest.approx(reuse.history_tokens)


def test_only_some_requests_have_the_system_prompt() -> None:
    assert reuse_of(replace(CHAT, system_share=0.25), 6_000, 300).system_tokens == 128


def test_a_history_longer_than_the_prompt_is_refused_with_the_most_turns() -> None:
    with pytest.raises(InvalidRequest, match=r"history of .* but the mean prompt has") as caught:
        reuse_of(replace(CHAT, turns=40), 2_000, 400)
    assert caught.value.field == "turns"
    most = float(caught.value.message.rsplit("at most ", 1)[1].rstrip("."))
    assert reuse_of(replace(CHAT, turns=most - 0.1), 2_000, 400).turn_tokens > 400


@pytest.mark.parametrize("turns", [1.0, 4.0])
def test_more_is_held_and_found_the_longer_blocks_stay(turns: float) -> None:
    sharing = compile_sharing(replace(CHAT, turns=turns), 4_000, 400)
    times = np.geomspace(0.1, 1e6, 30)
    assert np.all(np.diff(held_tokens(sharing, times, 2.0, 5.0)) > 0)
    found, shared = found_tokens(sharing, times, 2.0, 5.0)
    assert np.all(np.diff(found) >= 0)
    assert np.all(shared <= found)
    reuse = reuse_of(replace(CHAT, turns=turns), 4_000, 400)
    assert found[-1] == pytest.approx(reuse.system_tokens + reuse.history_tokens)


def solved(gpu: str, profile: SharingProfile, kv: str = "bf16") -> PrefixState:
    replica, lengths = served("llama-3.1-8b", gpu, kv=kv), lengths_of(requests(4_000, 400))
    sharing = compile_sharing(profile, 4_000, 400)
    meeting = meet(replica, lengths, OBJECTIVES, solution(replica, lengths, OBJECTIVES, 0.8), 0.8, sharing)
    return prefix_state(replica, lengths, OBJECTIVES, 0.8, sharing, meeting=meeting)


def test_hits_rise_with_memory() -> None:
    found = [solved("h100-sxm", CHAT, kv=kv).hit_share for kv in ("fp32", "bf16", "fp8")]
    assert found[0] < found[1] < found[2]
    assert solved("h200-sxm", CHAT).hit_share > solved("h100-sxm", CHAT).hit_share


def test_hits_fall_with_the_pause_between_turns() -> None:
    found = [
        solved("h100-sxm", replace(CHAT, think_s=pause)).hit_share for pause in (5.0, 60.0, 600.0, 6_000.0)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1] + 0.1


@pytest.mark.parametrize("gpu", ["l40s", "h100-sxm", "b200-sxm"])
@pytest.mark.parametrize("think_s", [5.0, 300.0])
def test_hits_and_concurrency_agree_with_each_other(gpu: str, think_s: float) -> None:
    profile = replace(CHAT, think_s=think_s)
    found = solved(gpu, profile)
    again = solve(served("llama-3.1-8b", gpu), found.lengths, OBJECTIVES, 0.8)
    assert one(again.sequences) == pytest.approx(one(found.state.sequences))
    assert found.requests_per_s == pytest.approx(0.8 * one(found.state.requests_per_s), rel=0.02)
    reuse = reuse_of(profile, 4_000, 400)
    assert 0 < found.cached_tokens <= reuse.system_tokens + reuse.history_tokens
    assert found.shared_tokens <= found.cached_tokens
    # What is held fills what running sequences leave, and what is found follows from how long it stays.
    assert found.held_at(found.retention_s) == pytest.approx(found.idle_bytes / 131_072, rel=0.05)
    assert found.cached_tokens == pytest.approx(found.cached_at(found.retention_s), abs=2)


def test_sharing_nothing_finds_nothing() -> None:
    alone = SharingProfile(system_tokens=0, system_share=1.0, turns=1, think_s=60)
    found = solved("h100-sxm", alone)
    assert found.hit_share == found.cached_tokens == 0
    plain = solve(served("llama-3.1-8b"), lengths_of(requests(4_000, 400)), OBJECTIVES, 0.8)
    assert one(found.state.request_gpu_s) == one(plain.request_gpu_s)


@pytest.mark.parametrize("granule", [1, 16, 32])
def test_hits_are_the_mean_of_what_a_stack_matches(granule: int) -> None:
    """Lengths drawn one by one: whole granules of what is held, and never a prompt's last token."""
    random = np.random.default_rng(7)
    prompts = random.integers(1000, 3000, 20_000)
    for held_share in (0.3, 0.9, 1.0):
        held = np.floor(prompts * held_share)
        matched = np.minimum(held, prompts - 1) // granule * granule
        expected = hit_tokens(prompts.mean() * held_share, prompts.mean(), float(granule))
        assert float(expected) == pytest.approx(float(matched.mean()), abs=0.75)
