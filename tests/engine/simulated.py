"""Requests drawn from a sharing profile, as a trace of blocks: what the approximations are held against."""

from dataclasses import dataclass

import numpy as np

from costsvc.engine.sharing import SharingProfile
from costsvc.engine.trace import Requests

BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Drawn:
    """A trace and when its requests come. [s]"""

    requests: Requests
    timestamp_s: np.ndarray


def drawn_trace(
    profile: SharingProfile,
    *,
    new_tokens: int,
    output_tokens: int,
    requests_per_s: float,
    sessions: int,
    seed: int = 1,
) -> Drawn:
    """Sessions arrive by a Poisson process, pause exponentially and choose prompt and document by share.

    All lengths are whole blocks, so that what is compared is the replacement and not the rounding.
    """
    rng = np.random.default_rng(seed)
    turns, steps = int(profile.turns), int(profile.steps)
    calls = turns * steps
    arrivals = np.cumsum(rng.exponential(calls / requests_per_s, sessions))
    pauses = np.where(
        np.arange(calls - 1) % steps == steps - 1,
        rng.exponential(profile.think_s, (sessions, calls - 1)),
        rng.exponential(profile.step_pause_s, (sessions, calls - 1)),
    )
    times = np.concatenate([arrivals[:, None], arrivals[:, None] + np.cumsum(pauses, axis=1)], axis=1)
    prompts = [(profile.system_tokens, profile.system_share), *profile.more_prompts]
    shares = np.asarray([share for _, share in prompts])
    chosen = rng.choice(len(prompts) + 1, sessions, p=np.append(shares, max(1 - shares.sum(), 0.0)))
    document = np.full(sessions, -1)
    if profile.documents is not None:
        ranks = np.arange(1.0, profile.documents.count + 1) ** -profile.documents.zipf_exponent
        drawn = rng.choice(len(ranks), sessions, p=ranks / ranks.sum())
        document = np.where(rng.random(sessions) < profile.documents.share, drawn, -1)
    lengths = [int(tokens) // BLOCK_TOKENS for tokens, _ in prompts] + [0]
    document_blocks = int(profile.documents.tokens) // BLOCK_TOKENS if profile.documents else 0
    turn = (new_tokens + output_tokens) // BLOCK_TOKENS
    order = np.argsort(times, axis=None, kind="stable")
    blocks, counts = [], np.zeros(len(order), dtype=np.int64)
    for n, place in enumerate(order.tolist()):
        session, call = divmod(place, calls)
        prompt, which = int(chosen[session]), int(document[session])
        # A block's number says all that came before it: the prompt, then the document, then the session.
        own = (call + 1) * turn
        parts = [
            (1 << 50) + prompt * 10_000 + np.arange(lengths[prompt]),
            (2 << 50) + (prompt * 10**7 + which) * 10_000 + np.arange(document_blocks if which >= 0 else 0),
            (3 << 50) + session * 100_000 + np.arange(own),
        ]
        joined = np.concatenate(parts)
        blocks.append(joined)
        counts[n] = len(joined)
    # A request leaves its answer in the cache as well, which is no part of what it asked.
    asked = counts * BLOCK_TOKENS - output_tokens
    return Drawn(Requests(np.concatenate(blocks), counts, asked), times.ravel()[order])
