r"""Prefix hits of a recorded trace: exact LRU, every capacity at once, by stack distances.

Before a request, a block's depth is the number of distinct blocks used since its last use, itself included:
an LRU cache of C blocks holds it exactly where its depth is at most C. Only leading blocks hit, so a block
needs the greatest depth from the first block up to it. Blocks that followed each other at their last use and
do so again lie one less deep each, so one depth answers for a whole run of them.

References
----------
.. [1] Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies," IBM Systems
   Journal 9(2), 1970.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.block_table import BlockTable
from costsvc.engine.dominance import Integers, weight_earlier_and_higher
from costsvc.errors import InvalidRequest

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Requests:
    """Consecutive requests of a trace: `counts[i]` of the `blocks` belong to request i, in order.

    Equal numbers in `blocks` mean equal prefixes up to and including the block. [token] for `input_tokens`
    """

    blocks: Integers
    counts: Integers
    input_tokens: Integers


@dataclass(frozen=True, slots=True)
class HitCurve:
    """Hits of a trace by capacity.

    `depths` rise: a cache of at least `depths[i]` blocks hits `hit_blocks[i]` blocks and `hit_tokens[i]`
    tokens. `distinct_blocks` is the capacity beyond which nothing changes. [blocks], [blocks], [token]
    """

    depths: Integers
    hit_blocks: Integers
    hit_tokens: Integers
    requests: int
    blocks: int
    input_tokens: int
    distinct_blocks: int

    def shares(self, capacity_blocks: float) -> tuple[float, float]:
        """Share of blocks and of input tokens that an LRU cache of that size hits. [1], [1]"""
        reached = int(np.searchsorted(self.depths, capacity_blocks, side="right"))
        if not reached:
            return 0.0, 0.0
        blocks, tokens = int(self.hit_blocks[reached - 1]), int(self.hit_tokens[reached - 1])
        return blocks / self.blocks, tokens / self.input_tokens


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs of repeated blocks: where they last stood, how long they are, where their request began.

    `is_leading` marks those without a first use before them in their request; `tokens` is their part of it.
    """

    last: Integers
    length: Integers
    start: Integers
    tokens: Integers
    is_leading: Flags


def hit_curve(chunks: Iterable[Requests], *, block_tokens: int) -> HitCurve:
    r"""Exact LRU hits of a trace for all capacities, in one pass over it.

    All blocks of a request are looked up, then used in order. A hit block saves the tokens of the prompt that
    lie in it, so of a last, partial block only those.

    Memory is 8 bytes per distinct block and some 100 per run, whatever the length of the trace.

    Parameters
    ----------
    block_tokens : int
        Tokens of a block. [token]

    Raises
    ------
    InvalidRequest
        The trace is empty.
    """
    table = BlockTable()
    found: list[_Runs] = []
    position = requests = input_tokens = 0
    for chunk in chunks:
        found.append(_runs(chunk, table, position, block_tokens))
        position += len(chunk.blocks)
        requests += len(chunk.counts)
        input_tokens += int(chunk.input_tokens.sum())
    if not input_tokens:
        raise InvalidRequest("The trace holds no request with a prompt. Give at least one.")
    depths, length, tokens = _needed(_joined(found))
    order = np.argsort(depths, kind="stable")
    depths = depths[order]
    ends = np.flatnonzero(np.append(depths[1:] != depths[:-1], np.True_)) if len(depths) else order
    return HitCurve(
        depths=depths[ends],
        hit_blocks=np.cumsum(length[order])[ends],
        hit_tokens=np.cumsum(tokens[order])[ends],
        requests=requests,
        blocks=position,
        input_tokens=input_tokens,
        distinct_blocks=table.distinct_blocks,
    )


def _runs(chunk: Requests, table: BlockTable, position: int, block_tokens: int) -> _Runs:
    """The runs of a chunk whose first block is the trace's block number `position`."""
    size = len(chunk.blocks)
    here = np.arange(size)
    first = np.repeat(np.cumsum(chunk.counts) - chunk.counts, chunk.counts)
    last = table.replace(chunk.blocks, position)
    is_new = last < 0
    news = np.concatenate([[0], np.cumsum(is_new)])
    is_leading = news[here + 1] == news[first]
    follows = np.zeros(size, dtype=np.bool_)
    follows[1:] = (last[1:] == last[:-1] + 1) & (first[1:] == first[:-1])
    heads = np.flatnonzero(~is_new & (~follows | np.append(True, is_new[:-1]))) if size else here
    ends = np.flatnonzero(~is_new & np.append(~follows[1:] | is_new[1:], True)) + 1 if size else here
    inputs = np.repeat(chunk.input_tokens, chunk.counts)
    held = np.clip(inputs - (here - first) * block_tokens, 0, block_tokens)
    tokens = np.concatenate([[0], np.cumsum(held)])
    return _Runs(
        last=last[heads],
        length=ends - heads,
        start=first[heads] + position,
        tokens=tokens[ends] - tokens[heads],
        is_leading=is_leading[heads],
    )


def _needed(runs: _Runs) -> tuple[Integers, Integers, Integers]:
    """The capacity that each leading run needs to hit, its blocks and its tokens.

    Between the last use of a block and the request, positions less those used again are distinct blocks.
    """
    opens = np.ones(len(runs.start), dtype=np.bool_)
    opens[1:] = runs.start[1:] != runs.start[:-1]
    number = np.arange(len(runs.start))
    first = np.maximum.accumulate(np.where(opens, number, 0))
    # A block that stands twice in one request was looked up with its first place and asks for nothing more.
    asked = np.flatnonzero(runs.is_leading & (runs.last < runs.start))
    again = weight_earlier_and_higher(runs.last, runs.length, asked, first[asked])
    depths = np.zeros(len(runs.start), dtype=np.int64)
    depths[asked] = runs.start[asked] - runs.last[asked] - again
    leading = np.flatnonzero(runs.is_leading)
    return _greatest_so_far(depths[leading], first[leading]), runs.length[leading], runs.tokens[leading]


def _greatest_so_far(depths: Integers, group: Integers) -> Integers:
    """Running maximum within groups of equal, rising numbers."""
    if not len(depths):
        return depths
    step = int(depths.max()) + 1
    number = np.cumsum(np.append(0, group[1:] != group[:-1]))
    return np.asarray(np.maximum.accumulate(depths + number * step) - number * step)


def _joined(parts: Sequence[_Runs]) -> _Runs:
    def whole(name: str) -> NDArray[np.int64]:
        return np.concatenate([getattr(part, name) for part in parts]) if parts else np.zeros(0, np.int64)

    return _Runs(
        last=whole("last"),
        length=whole("length"),
        start=whole("start"),
        tokens=whole("tokens"),
        is_leading=whole("is_leading").astype(np.bool_),
    )
