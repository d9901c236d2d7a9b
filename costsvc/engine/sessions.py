"""What a recorded trace says of its sharing: the prompt that most begin with, and conversations."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.block_table import BlockTable
from costsvc.engine.trace import Requests

# A first block that fewer requests begin with is no system prompt; a next one that fewer share ends it.
_LEAST_SHARE: Final = 0.05
_STAYS_SHARE: Final = 0.8
_BISECTIONS: Final = 60
_MOST_CALLS: Final = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSharing:
    """A shared prompt, and the mean conversation that explains what else an unbounded cache hits.

    `pause_s` is the mean time since the last use of what was found, weighted by its tokens. [token], [1], [s]
    """

    system_tokens: float
    system_share: float
    calls: float
    pause_s: float
    hit_share: float


def recorded_sharing(
    requests: Requests, timestamp_s: NDArray[np.float64], output_tokens: float, *, block_tokens: int
) -> RecordedSharing:
    """Fit a shared prompt and conversations to what an unbounded cache hits.

    Parameters
    ----------
    output_tokens : float
        Mean output: each request's answer is part of the next one's prompt. [token]
    """
    starts = np.cumsum(requests.counts) - requests.counts
    last = BlockTable().replace(requests.blocks, 0)
    first = np.repeat(starts, requests.counts)
    owner = np.repeat(np.arange(len(starts)), requests.counts)
    # Blocks of a request count as found only if they were there before it and all before them were.
    news = np.concatenate([[0], np.cumsum((last < 0) | (last >= first))])
    leading = news[np.arange(len(last)) + 1] == news[first]
    hits = np.bincount(owner[leading], minlength=len(starts))
    system_blocks, system_share = _common_prefix(requests, starts)
    found = np.minimum(hits * block_tokens, requests.input_tokens)
    prompt = float(requests.input_tokens.mean())
    system = system_blocks * block_tokens * system_share
    history = max(float(found.mean()) - system, 0.0)
    later = np.flatnonzero(hits > system_blocks)
    before = np.searchsorted(starts, last[starts[later] + hits[later] - 1], side="right") - 1
    weights = found[later] - system_blocks * block_tokens
    pauses = timestamp_s[later] - timestamp_s[before]
    return RecordedSharing(
        system_tokens=float(system_blocks * block_tokens),
        system_share=system_share,
        calls=_calls(history, prompt - system, output_tokens),
        pause_s=float(weights @ pauses / weights.sum()) if weights.sum() > 0 else 0.0,
        hit_share=float(found.sum() / requests.input_tokens.sum()),
    )


def _common_prefix(requests: Requests, starts: NDArray[np.int64]) -> tuple[int, float]:
    """Blocks of the commonest beginning, and the share of requests that have it."""
    rows, share, depth = np.arange(len(starts)), 0.0, 0
    while True:
        rows = rows[requests.counts[rows] > depth]
        if not len(rows):
            return depth, share
        values, counts = np.unique(requests.blocks[starts[rows] + depth], return_counts=True)
        common = float(counts.max()) / len(starts)
        if common < (_STAYS_SHARE * share if depth else _LEAST_SHARE):
            return depth, share
        rows = rows[requests.blocks[starts[rows] + depth] == values[counts.argmax()]]
        share, depth = (common if not depth else share), depth + 1


def _calls(history_tokens: float, own_tokens: float, output_tokens: float) -> float:
    """Requests of a conversation whose mean history is so long: `reuse_of`, solved for the number."""
    low, high = 1.0, _MOST_CALLS
    for _ in range(_BISECTIONS):
        calls = (low + high) / 2
        new_tokens = (own_tokens - output_tokens * (calls - 1) / 2) * 2 / (calls + 1)
        carried = (max(new_tokens, 1.0) + output_tokens) * (calls - 1) / 2
        low, high = (calls, high) if carried < history_tokens and new_tokens > 1 else (low, calls)
    return low
