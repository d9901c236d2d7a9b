"""Where a request's prompt has been seen before, and what of it an LRU cache still holds.

Prompts and documents that many requests share, and conversations that send their history again, seen through
one number: how long a block stays without being used.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.attention import Floats
from costsvc.errors import InvalidRequest

Array = NDArray[np.float64]

# Documents beyond these ranks are grouped, each group this much wider than the one before.
_SINGLE_RANKS: Final = 64
_GROUP_RATIO: Final = 1.15
_LEAST_NEW_TOKENS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """Documents put before questions: `share` of conversations are about one of `count`.

    Popularity falls with rank as :math:`r^{-a}`. [documents], [token], [1], [1]
    """

    count: float
    tokens: float
    share: float
    zipf_exponent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingProfile:
    """Where a request's prompt has been seen before.

    Parameters
    ----------
    system_tokens, system_share : float
        A prompt that this share of requests begin with. [token], [1]
    turns : float
        Mean user turns of a conversation; each request sends the whole history again. [turns]
    think_s : float
        Mean pause before the next turn, exponential. [s]
    more_prompts : tuple of (float, float)
        Other system prompts: tokens, and the share of requests that begin with each. [token], [1]
    steps, step_pause_s : float
        Requests in a turn of an agent, and the mean pause while its tool runs, exponential. [requests], [s]
    retention_s : float
        Longest that anything is kept unused; infinite where only room decides. [s]
    """

    system_tokens: float
    system_share: float
    turns: float
    think_s: float
    more_prompts: tuple[tuple[float, float], ...] = ()
    documents: Documents | None = None
    steps: float = 1.0
    step_pause_s: float = 1.0
    retention_s: float = np.inf

    @property
    def calls(self) -> float:
        """Mean requests of a conversation. [requests]"""
        return self.turns * self.steps


@dataclass(frozen=True, slots=True)
class Reuse:
    """What a mean request could reuse, and what a conversation leaves behind.

    `history_tokens` averages over all requests; `turn_tokens` is what one adds (new prompt plus answer).
    """

    system_tokens: float
    history_tokens: float
    turn_tokens: float
    document_tokens: float = 0.0


@dataclass(frozen=True, slots=True)
class Sharing:
    """A profile as arrays: pieces that many requests begin with, and what conversations carry.

    `piece_copies` pieces of `piece_tokens` stand before `piece_share` of all requests each.
    """

    piece_tokens: Array
    piece_share: Array
    piece_copies: Array
    calls: float
    pauses_s: Array
    pause_shares: Array
    history_tokens: float
    call_tokens: float
    retention_s: float = np.inf

    @property
    def popular_tokens(self) -> float:
        """Mean tokens of shared pieces before a request. [token]"""
        return float(np.sum(self.piece_copies * self.piece_share * self.piece_tokens))


def reuse_of(profile: SharingProfile, prompt_tokens: float, output_tokens: float) -> Reuse:
    r"""Split a mean prompt into system prompt, document, history and new tokens.

    With :math:`n` requests that each add :math:`u` new tokens and O of answer, the mean prompt is
    :math:`s + d + u (n+1)/2 + O (n-1)/2`, of which :math:`(u + O)(n-1)/2` is history.

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
    system += sum(tokens * share for tokens, share in profile.more_prompts)
    documents = profile.documents
    document = 0.0 if documents is None else documents.tokens * documents.share
    calls = profile.calls
    answers = output_tokens * (calls - 1) / 2
    new_tokens = (prompt_tokens - system - document - answers) * 2 / (calls + 1)
    if new_tokens < _LEAST_NEW_TOKENS:
        longest = 1 + 2 * max(prompt_tokens - system - document - 1, 0) / (output_tokens + 1)
        raise InvalidRequest(
            f"{calls:g} requests in a conversation with {output_tokens:g} output tokens each make a history "
            f"of {answers:g} tokens, but the mean prompt has {prompt_tokens:g}, {system + document:g} of "
            f"them shared. Raise the prompt, or lower turns times steps to at most {max(longest, 1):.1f}.",
            field="turns",
        )
    turn = new_tokens + output_tokens
    return Reuse(
        system_tokens=system,
        history_tokens=turn * (calls - 1) / 2,
        turn_tokens=turn,
        document_tokens=document,
    )


def compile_sharing(profile: SharingProfile, prompt_tokens: float, output_tokens: float) -> Sharing:
    """The profile as arrays, for the formulas below.

    Raises
    ------
    InvalidRequest
        The parts are longer than the prompt.
    """
    reuse = reuse_of(profile, prompt_tokens, output_tokens)
    prompts = [(profile.system_tokens, profile.system_share), *profile.more_prompts]
    tokens = np.asarray([one for one, _ in prompts], dtype=np.float64)
    shares = np.asarray([one for _, one in prompts], dtype=np.float64)
    copies = np.ones(len(prompts))
    if profile.documents is not None:
        popularity, group = zipf_groups(profile.documents.count, profile.documents.zipf_exponent)
        tokens = np.append(tokens, np.full(len(group), profile.documents.tokens))
        shares = np.append(shares, profile.documents.share * popularity)
        copies = np.append(copies, group)
    repeats = max(profile.calls - 1.0, 0.0)
    between_turns = (profile.turns - 1.0) / repeats if repeats else 1.0
    return Sharing(
        piece_tokens=tokens,
        piece_share=shares,
        piece_copies=copies,
        calls=profile.calls,
        pauses_s=np.asarray([profile.think_s, profile.step_pause_s]),
        pause_shares=np.asarray([between_turns, 1.0 - between_turns]),
        history_tokens=reuse.history_tokens,
        call_tokens=reuse.turn_tokens,
        retention_s=profile.retention_s,
    )


def zipf_groups(count: float, exponent: float) -> tuple[Array, Array]:
    r"""Popularity of one document of each group of neighbouring ranks, and how many are in the group.

    The first ranks stand alone; of the others the mass is :math:`\int r^{-a} dr` from half a rank before the
    first to half a rank after the last.

    Examples
    --------
    >>> popularity, documents = zipf_groups(1000, 1.0)
    >>> round(float(popularity @ documents), 9), float(documents.sum())
    (1.0, 1000.0)
    """
    single = np.arange(1.0, min(count, _SINGLE_RANKS) + 1)
    mass, width = single**-exponent, np.ones_like(single)
    if count > _SINGLE_RANKS:
        steps = int(np.ceil(np.log(count / _SINGLE_RANKS) / np.log(_GROUP_RATIO)))
        edges = np.geomspace(_SINGLE_RANKS + 0.5, count + 0.5, steps + 1)
        power = 1.0 - exponent
        integral = np.log(edges) if power == 0 else edges**power / power
        mass, width = np.append(mass, np.diff(integral)), np.append(width, np.diff(edges))
    return mass / mass.sum() / width, width


def found_tokens(
    sharing: Sharing, kept_s: Floats, requests_per_s: Floats, residence_s: Floats
) -> tuple[Array, Array]:
    r"""Mean tokens of a prompt that are still held, and the part of them that many requests share.

    A conversation of n requests holds its pieces for :math:`L = T + (n-1) E\min(\tau, T) + n R`: while it
    runs, between its requests and after them. A piece that they choose with probability q is there with
    probability :math:`1 - e^{-(\lambda/n) q L}` (Che's approximation; conversations are Poisson). A
    conversation finds all it sent before if its pause was shorter than :math:`T`.

    Parameters
    ----------
    kept_s : float or array
        How long a block stays without being used, :math:`T`. [s]
    requests_per_s : float or array
        Rate of requests at one cache, :math:`\lambda`. [1/s]
    residence_s : float or array
        How long a request runs, :math:`R`. [s]

    References
    ----------
    .. [1] Che, Tung and Wang, "Hierarchical web caching systems," IEEE JSAC 20(7), 2002, eq. 3.
    """
    kept_s, present = _present(sharing, kept_s, requests_per_s, residence_s)
    popular = np.sum(present * (sharing.piece_copies * sharing.piece_share * sharing.piece_tokens), axis=-1)
    again = (sharing.calls - 1.0) / sharing.calls * _returned(sharing, kept_s)
    shared = again * sharing.popular_tokens + (1.0 - again) * popular
    history = sharing.history_tokens * _returned(sharing, kept_s)
    return np.asarray(shared + history), np.asarray(shared)


def held_tokens(sharing: Sharing, kept_s: Floats, requests_per_s: Floats, residence_s: Floats) -> Array:
    r"""Tokens that a cache holds whose blocks stay :math:`T` unused, running requests' own parts left out.

    Conversations between requests hold their history for :math:`\min(\mathrm{pause}, T)`, ended ones for
    :math:`T`:
    :math:`C = \sum_j t_j (1 - e^{-(\lambda/n) q_j L}) + \lambda (u+O) [\tfrac{n-1}{2} E\min(\tau, T) + T]`.
    It is Che's equation: what is held fills the capacity.
    """
    kept_s, present = _present(sharing, kept_s, requests_per_s, residence_s)
    popular = np.sum(present * (sharing.piece_copies * sharing.piece_tokens), axis=-1)
    between_s = (sharing.calls - 1.0) / 2.0 * _waits_s(sharing, kept_s)
    return np.asarray(popular + requests_per_s * sharing.call_tokens * (between_s + kept_s))


def _present(
    sharing: Sharing, kept_s: Floats, requests_per_s: Floats, residence_s: Floats
) -> tuple[Array, Array]:
    """Probability that a piece is held: one of its conversations used it within the time it stays. [1]"""
    kept_s = np.asarray(kept_s, dtype=np.float64)
    per_session_s = kept_s + (sharing.calls - 1.0) * _waits_s(sharing, kept_s) + sharing.calls * residence_s
    sessions = np.asarray(requests_per_s / sharing.calls * per_session_s)
    return kept_s, -np.expm1(-sessions[..., None] * sharing.piece_share)


def _waits_s(sharing: Sharing, kept_s: Array) -> Array:
    r"""Mean time that a conversation is held between two requests, :math:`E\min(\tau, T)`. [s]"""
    waits = -np.expm1(-kept_s[..., None] / sharing.pauses_s) * sharing.pauses_s
    return np.asarray((waits * sharing.pause_shares).sum(axis=-1))


def _returned(sharing: Sharing, kept_s: Array) -> Array:
    """Probability that a conversation's next request comes while its history is held. [1]"""
    within = -np.expm1(-kept_s[..., None] / sharing.pauses_s)
    return np.asarray((within * sharing.pause_shares).sum(axis=-1))
