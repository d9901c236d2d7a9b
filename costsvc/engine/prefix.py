"""Prefix caching of a parametric profile: what is found again, solved together with what runs.

A shared system prompt and multi-turn conversations are kept by LRU in the memory that running sequences
leave; how long is Che's characteristic time.
"""

from dataclasses import dataclass, replace

import numpy as np

from costsvc.engine.memory import Lengths, memory_budget, sequence_bytes
from costsvc.engine.replica import Replica
from costsvc.engine.serving import SteadyState, solve
from costsvc.engine.specs import Objectives
from costsvc.errors import InvalidRequest

FIXED_POINT_ROUNDS = 40
BISECTIONS = 80
DAMPING_SHARE = 0.5
TOLERANCE_SHARE = 1e-6
LONGEST_TIME_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingProfile:
    """Where a request's prompt has been seen before.

    Parameters
    ----------
    system_tokens, system_share : float
        A prompt that this share of requests begin with. [token], [1]
    turns : float
        Mean requests of a conversation, each of which sends the whole history again. [requests]
    think_s : float
        Mean pause before the next request, exponential. [s]
    """

    system_tokens: float
    system_share: float
    turns: float
    think_s: float


@dataclass(frozen=True, slots=True)
class Reuse:
    """What a mean request could reuse, and what a conversation leaves behind.

    `history_tokens` averages over all turns; `turn_tokens` is what one turn adds (new prompt plus answer).
    """

    system_tokens: float
    history_tokens: float
    turn_tokens: float


@dataclass(frozen=True, slots=True)
class PrefixState:
    """The steady state with its prefix cache.

    `retention_s` is Che's characteristic time: how long a block stays without being used.
    `idle_bytes` is the cache memory per accelerator that holds no running sequence.
    """

    cached_tokens: float
    shared_tokens: float
    hit_share: float
    retention_s: float
    idle_bytes: float
    state: SteadyState
    lengths: Lengths


def reuse_of(profile: SharingProfile, prompt_tokens: float, output_tokens: float) -> Reuse:
    r"""Split a mean prompt into system prompt, history and new tokens.

    With :math:`n` turns that each add :math:`u` new tokens and O of answer, the mean prompt is
    :math:`s + u (n+1)/2 + O (n-1)/2`, of which :math:`(u + O)(n-1)/2` is history.

    Raises
    ------
    InvalidRequest
        The history of so many turns alone is longer than the prompt.

    Examples
    --------
    >>> one = SharingProfile(system_tokens=1000, system_share=1.0, turns=5, think_s=60)
    >>> reuse_of(one, prompt_tokens=4000, output_tokens=500).history_tokens
    2333.333333333333
    """
    system = profile.system_tokens * profile.system_share
    turns = profile.turns
    answers = output_tokens * (turns - 1) / 2
    new_tokens = (prompt_tokens - system - answers) * 2 / (turns + 1)
    if new_tokens < 1:
        longest = 1 + 2 * max(prompt_tokens - system - 1, 0) / (output_tokens + 1)
        raise InvalidRequest(
            f"turns={turns:g} with {output_tokens:g} output tokens each makes a history of {answers:g} tokens, but "
            f"the mean prompt has {prompt_tokens:g}, {system:g} of them shared. Raise the context, or lower turns "
            f"to at most {max(longest, 1):.1f}.",
            field="turns",
        )
    turn = new_tokens + output_tokens
    return Reuse(system_tokens=system, history_tokens=turn * (turns - 1) / 2, turn_tokens=turn)


def characteristic_time_s(
    capacity_tokens: float, requests_per_s: float, profile: SharingProfile, reuse: Reuse
) -> float:
    r"""How long an idle block stays: Che's approximation for LRU under Poisson arrivals.

    Conversations between turns hold their history for :math:`\min(\text{think}, T)`, ended ones for
    :math:`T`; what is held fills the capacity:
    :math:`C = s + \lambda (u+O) [\tfrac{n-1}{2} \tau (1 - e^{-T/\tau}) + T]`.

    Returns
    -------
    float
        [s], at most `LONGEST_TIME_S`.

    References
    ----------
    .. [1] Che, Tung and Wang, "Hierarchical web caching systems," IEEE JSAC 20(7), 2002, eq. 3.
    """
    free = capacity_tokens - profile.system_tokens
    if free <= 0:
        return 0.0
    rate = requests_per_s * reuse.turn_tokens

    def held(time_s: float) -> float:
        between = (profile.turns - 1) / 2 * profile.think_s * -np.expm1(-time_s / profile.think_s)
        return float(rate * (between + time_s))

    low, high = 0.0, min(free / rate, LONGEST_TIME_S)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if held(middle) <= free else (low, middle)
    return low


def solve_with_prefix_cache(
    replica: Replica,
    lengths: Lengths,
    objectives: Objectives,
    utilization_share: float,
    profile: SharingProfile,
) -> PrefixState:
    """Hit rate and concurrency together: running sequences take memory first, idle prefixes the rest.

    Only whole blocks are found again, and of a whole prompt at least one token is computed.
    """
    prompt, output = float(np.ravel(lengths.prompt)[0]), float(np.ravel(lengths.output)[0])
    reuse = reuse_of(profile, prompt, output)

    def found(cached: float, shared: float) -> tuple[PrefixState, float, float]:
        at = _with_cached(lengths, prompt, cached, shared)
        state = solve(replica, at, objectives, utilization_share)
        idle_bytes = _idle_bytes(replica, at, state, utilization_share)
        rate = float(state.requests_per_s[0, 0]) * utilization_share
        tokens = float(replica.dp[0, 0]) * idle_bytes / _token_bytes(replica, prompt)
        kept_s = characteristic_time_s(tokens, rate, profile, reuse)
        history = reuse.history_tokens * -np.expm1(-kept_s / profile.think_s)
        system = reuse.system_tokens * -np.expm1(-rate * profile.system_share * kept_s)
        partial = replica.calibration.block_tokens / 2 if history + system > 0 else 0.0
        hits = float(np.clip(history + system - partial, 0.0, prompt - 1.0))
        here = PrefixState(cached, shared, cached / prompt, kept_s, idle_bytes, state, at)
        return here, hits, min(float(system), hits)

    solution, hits, system = found(0.0, 0.0)
    for _ in range(FIXED_POINT_ROUNDS):
        cached, shared = solution.cached_tokens, solution.shared_tokens
        if abs(hits - cached) + abs(system - shared) < TOLERANCE_SHARE * prompt:
            break
        cached += DAMPING_SHARE * (hits - cached)
        shared += DAMPING_SHARE * (system - shared)
        solution, hits, system = found(cached, shared)
    return solution


def _with_cached(lengths: Lengths, prompt: float, cached: float, shared: float) -> Lengths:
    return replace(
        lengths,
        uncached=np.asarray([prompt - cached]),
        cached=np.asarray([cached]),
        shared=np.asarray([min(shared, cached)]),
    )


def _idle_bytes(replica: Replica, lengths: Lengths, state: SteadyState, utilization_share: float) -> float:
    """Cache memory per accelerator that running sequences leave at the utilization sold. [B]"""
    running = utilization_share * state.sequences[0, 0] / replica.dp[0, 0]
    alone = sequence_bytes(replica, lengths.resident - lengths.shared)
    taken = running * np.ravel(alone)[0] + np.ravel(sequence_bytes(replica, lengths.shared))[0]
    return max(float(memory_budget(replica).kv_bytes[0, 0] - taken), 0.0)


def _token_bytes(replica: Replica, prompt: float) -> float:
    """Mean cache bytes per token of a kept prefix, per accelerator. [B/token]"""
    return float(np.ravel(sequence_bytes(replica, prompt))[0]) / prompt
