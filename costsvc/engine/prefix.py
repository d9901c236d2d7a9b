"""Prefix caching of a parametric profile: what is found again, solved together with what runs.

Idle prefixes are kept by LRU in the memory that running sequences leave, and in the tiers below it. Hits make
requests cheaper, so more of them run and less is left: both sides are computed over a range of retention
times, for all layouts at once, and meet where what is held fills what is left.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from costsvc.engine.attention import Floats
from costsvc.engine.memory import Lengths, memory_budget, sequence_bytes
from costsvc.engine.replica import Replica
from costsvc.engine.serving import Solution, SteadyState, solution, solve
from costsvc.engine.sharing import (
    Array,
    Sharing,
    SharingProfile,
    found_tokens,
    held_tokens,
    reuse_of,
)
from costsvc.engine.specs import Objectives

__all__ = [
    "Meeting",
    "PrefixState",
    "SharingProfile",
    "Tier",
    "TierHits",
    "hit_tokens",
    "meet",
    "prefix_state",
    "reuse_of",
]

SHORTEST_TIME_S: Final = 1e-2
LONGEST_TIME_S: Final = 1e9
COARSE_POINTS: Final = 34
FINE_POINTS: Final = 12
CURVE_POINTS: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Cache memory below HBM, per accelerator. [B], [B/s]"""

    name: str
    capacity_bytes: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TierHits:
    """What one tier holds and serves. `retention_s` is how long a block stays in it or above.

    `load_s` is what a mean request waits for the tier. [B], [token], [s], [s]
    """

    name: str
    capacity_bytes: float
    cached_tokens: float
    retention_s: float
    load_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixState:
    """The steady state with its prefix cache.

    `retention_s` is Che's characteristic time: how long a block stays without being used, in any tier.
    `idle_bytes` is the cache memory per accelerator that holds no running sequence. Rates are of one cache,
    that is of one attention rank.
    """

    cached_tokens: float
    shared_tokens: float
    hit_share: float
    retention_s: float
    idle_bytes: float
    token_bytes: float
    match_tokens: float
    requests_per_s: float
    residence_s: float
    tiers: tuple[TierHits, ...]
    sharing: Sharing
    state: SteadyState
    lengths: Lengths

    def cached_at(self, kept_s: float) -> float:
        """Mean tokens found if blocks stayed that long, at the same rate. [token]"""
        found, _ = found_tokens(self.sharing, kept_s, self.requests_per_s, self.residence_s)
        return float(np.ravel(hit_tokens(found, self.lengths.prompt, self.match_tokens))[0])

    def held_at(self, kept_s: float) -> float:
        """Tokens that one cache then holds. [token]"""
        return float(held_tokens(self.sharing, kept_s, self.requests_per_s, self.residence_s))

    def retention_of(self, held: float) -> float:
        """How long blocks stay where there is room for so many tokens. [s]"""
        stays_s = _time_of(self.sharing, held, self.requests_per_s, self.residence_s)
        return min(stays_s, self.sharing.retention_s)


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where what is held fills what is left, per layout: arrays are (layouts, 1).

    `requests_per_s` and `residence_s` are of one attention rank. [s], [1/s], [s], [accelerator-second]
    """

    kept_s: Array
    requests_per_s: Array
    residence_s: Array
    request_gpu_s: Array

    def of(self, layout: int) -> "Meeting":
        """That of one layout."""
        parts = (self.kept_s, self.requests_per_s, self.residence_s, self.request_gpu_s)
        return Meeting(*(part[layout : layout + 1] for part in parts))


def meet(
    replica: Replica,
    lengths: Lengths,
    objectives: Objectives,
    first: Solution,
    utilization_share: float,
    sharing: Sharing,
    *,
    tiers: tuple[Tier, ...] = (),
) -> Meeting:
    """How long blocks stay: a wide range of times first, then a narrow one around the crossing.

    Where the profile keeps nothing longer than some time and all of that fits, they stay that time.

    Parameters
    ----------
    first : Solution
        What runs where nothing is found again.
    """
    rate, residence_s, _ = _flow(replica, first, utilization_share)
    places = np.arange(len(replica.tp))[:, None]

    def crossing(kept_s: Array, rate: Array, residence_s: Array) -> tuple[Array, Array, Meeting]:
        """The two times between which what is held outgrows the room, and what holds in between."""
        at = _lengths_at(replica, lengths, sharing, kept_s, rate=rate, residence_s=residence_s)
        solved = solution(replica, at, objectives, utilization_share)
        rate, residence_s, request_gpu_s = _flow(replica, solved, utilization_share)
        room = _room_tokens(replica, at, rate * residence_s, tiers)
        surplus = room - held_tokens(sharing, kept_s, rate, residence_s)
        fits = np.logical_and.accumulate(surplus >= 0, axis=1)
        low = np.maximum(fits.sum(axis=1, keepdims=True) - 1, 0)
        high = np.minimum(low + 1, kept_s.shape[1] - 1)
        first_s, last_s, left, lack = (
            part[places, place] for part in (kept_s, surplus) for place in (low, high)
        )
        part = np.clip(left / np.maximum(left - lack, 1.0), 0.0, 1.0)
        between_s = first_s + part * (last_s - first_s)
        here = (values[places, low] for values in (rate, residence_s, request_gpu_s))
        return first_s, last_s, Meeting(between_s, *here)

    wide_s = np.append(0.0, np.geomspace(SHORTEST_TIME_S, LONGEST_TIME_S, COARSE_POINTS))
    wide_s = np.minimum(wide_s, sharing.retention_s)
    first_s, last_s, near = crossing(np.tile(wide_s, (len(places), 1)), rate, residence_s)
    narrow_s = first_s + np.linspace(0.0, 1.0, FINE_POINTS) * (last_s - first_s)
    return crossing(narrow_s, near.requests_per_s, near.residence_s)[2]


def prefix_state(
    replica: Replica,
    lengths: Lengths,
    objectives: Objectives,
    utilization_share: float,
    sharing: Sharing,
    *,
    meeting: Meeting,
    tiers: tuple[Tier, ...] = (),
) -> PrefixState:
    """The state of one layout where both sides meet, and what each tier holds and serves."""
    kept_s, rate, residence_s = (
        float(part[0, 0]) for part in (meeting.kept_s, meeting.requests_per_s, meeting.residence_s)
    )
    at = _lengths_at(replica, lengths, sharing, meeting.kept_s[0], rate=rate, residence_s=residence_s)
    state = solve(replica, at, objectives, utilization_share)
    token_bytes = _token_bytes(replica, lengths)
    hits, prompt = float(np.ravel(at.cached)[0]), float(np.ravel(at.prompt)[0])
    idle_tokens = float(np.ravel(_room_tokens(replica, at, rate * residence_s, ()))[0])
    found, _ = found_tokens(sharing, kept_s, rate, residence_s)
    scale = hits / float(found) if found > 0 else 0.0
    served: list[TierHits] = []
    above, capacity = 0.0, 0.0
    hbm = Tier(name="hbm", capacity_bytes=max(idle_tokens, 0.0) * token_bytes, bytes_per_s=np.inf)
    for tier in (hbm, *tiers):
        capacity += tier.capacity_bytes / token_bytes
        stays_s = min(_time_of(sharing, capacity, rate, residence_s), kept_s) if tiers else kept_s
        upto = float(found_tokens(sharing, stays_s, rate, residence_s)[0]) * scale
        load_s = (upto - above) * token_bytes / tier.bytes_per_s
        served.append(
            TierHits(
                name=tier.name,
                capacity_bytes=tier.capacity_bytes,
                cached_tokens=upto - above,
                retention_s=stays_s,
                load_s=load_s,
            )
        )
        above = upto
    return PrefixState(
        cached_tokens=hits,
        shared_tokens=float(np.ravel(at.shared)[0]),
        hit_share=hits / prompt,
        retention_s=kept_s,
        idle_bytes=hbm.capacity_bytes,
        token_bytes=token_bytes,
        match_tokens=replica.calibration.prefix_match_tokens,
        requests_per_s=rate,
        residence_s=residence_s,
        tiers=tuple(served),
        sharing=sharing,
        state=state,
        lengths=at,
    )


def hit_tokens(found: Floats, prompt: Floats, match_tokens: float) -> Array:
    r"""Hits of a prompt of which so many leading tokens are held, where hits are multiples of `match_tokens`.

    Lengths fall evenly on the grid of :math:`g` tokens, so :math:`(g-1)/2` are lost on average, less where
    hardly anything is held. The last token of a prompt is computed whatever is held, because its logits begin
    the answer: at most :math:`P - (g+1)/2` are hits. [token]

    Examples
    --------
    >>> [round(float(hit_tokens(one, 1000.0, 16.0)), 3) for one in (0.0, 500.0, 1000.0)]
    [0.0, 492.5, 991.5]
    >>> [round(float(hit_tokens(one, 1000.0, 1.0)), 3) for one in (0.0, 500.0, 1000.0)]
    [0.0, 500.0, 999.0]
    """
    lost = (match_tokens - 1.0) / 2 * -np.expm1(-found / match_tokens)
    most = np.maximum(prompt - (match_tokens + 1.0) / 2, 0.0)
    return np.asarray(np.clip(found - lost, 0.0, most))


def _lengths_at(
    replica: Replica, lengths: Lengths, sharing: Sharing, kept_s: Array, *, rate: Floats, residence_s: Floats
) -> Lengths:
    """Lengths with what is hit if blocks stay that long."""
    prompt = lengths.prompt
    found, shared = found_tokens(sharing, kept_s, rate, residence_s)
    hits = hit_tokens(found, prompt, replica.calibration.prefix_match_tokens)
    return replace(lengths, uncached=prompt - hits, cached=hits, shared=np.minimum(shared, hits))


def _flow(replica: Replica, solved: Solution, utilization_share: float) -> tuple[Array, Array, Array]:
    r"""What one attention rank, which has its own cache, takes at the utilization sold, and what a request costs.

    There fewer sequences run and steps are shorter. With :math:`T(B) \approx a + b B` between that share of the
    sequences and all of them, and the rate fixed at :math:`r = u X`, those that run are :math:`B = r O (a + b B)`.

    Returns
    -------
    tuple
        Requests of a rank, 0 where none run, how long one runs, and its cost. [1/s], [s], [accelerator-second]
    """
    full, output = solved.sequences, solved.plan.number("output")
    few = utilization_share * full
    step_s, sold_step_s = solved.plan.steps_s(full), solved.plan.steps_s(few)
    growth_s = (step_s - sold_step_s) / np.maximum(full - few, 1e-9)
    started = few / step_s
    running_s = (sold_step_s - growth_s * few) / np.maximum(1.0 - started * growth_s, 1e-9)
    residence_s = np.minimum(np.maximum(running_s, 0.0), step_s) * output
    rate = started / output / replica.dp
    cost_gpu_s = solved.request_gpu_s
    return np.nan_to_num(rate), np.nan_to_num(residence_s), cost_gpu_s


def _room_tokens(replica: Replica, lengths: Lengths, running: Floats, tiers: tuple[Tier, ...]) -> Array:
    """Tokens of cache that the parts of running sequences leave, and the tiers below hold. [token]"""
    own = running * sequence_bytes(replica, lengths.resident - lengths.shared)
    below = sum(tier.capacity_bytes for tier in tiers)
    return np.asarray((memory_budget(replica).kv_bytes - own + below) / _token_bytes_column(replica, lengths))


def _token_bytes_column(replica: Replica, lengths: Lengths) -> Array:
    """Mean cache bytes per token of a kept prefix, per accelerator. [B/token]"""
    prompt = float(np.ravel(lengths.prompt)[0])
    return np.asarray(sequence_bytes(replica, prompt)) / prompt


def _token_bytes(replica: Replica, lengths: Lengths) -> float:
    return float(_token_bytes_column(replica, lengths)[0, 0])


def _time_of(sharing: Sharing, capacity_tokens: float, rate: float, residence_s: float) -> float:
    """How long blocks stay in so many tokens at given rates, interpolated on its curve. [s]"""
    times = np.geomspace(SHORTEST_TIME_S, LONGEST_TIME_S, CURVE_POINTS)
    held = held_tokens(sharing, times, rate, residence_s)
    if capacity_tokens < held[0]:
        return 0.0
    return float(np.exp(np.interp(capacity_tokens, held, np.log(times))))
