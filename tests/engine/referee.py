"""A small discrete-event simulation of one replica: the referee of the steady state and of the hit rate.

Continuous batching with chunked prefill, blocks by page with a count of their users, prefixes kept by LRU in
the blocks that nobody uses. It shares nothing with the closed formulas but the time of one step.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from costsvc.engine.memory import memory_budget, sequence_bytes
from costsvc.engine.replica import Replica
from costsvc.engine.step import Batch, step_time


@dataclass(slots=True, kw_only=True)
class Asked:
    """One request: when it comes, its lengths, and what its blocks are called. [s], [token]"""

    arrives_s: float
    prompt_tokens: int
    output_tokens: int
    names: Sequence[int]
    computed: int = 0
    made: int = 0
    held: list[int] = field(default_factory=list)
    hits: int = 0

    @property
    def tokens(self) -> int:
        """What has to be in memory before the next token. [token]"""
        return self.prompt_tokens + self.made


class Blocks:
    """Blocks of a cache: used ones with their users, free ones, and kept ones by last use."""

    def __init__(self, count: int) -> None:
        self.free = count
        self.users: dict[int, int] = {}
        self.kept: OrderedDict[int, None] = OrderedDict()

    def is_there(self, name: int) -> bool:
        return name in self.users or name in self.kept

    def room(self) -> int:
        return self.free + len(self.kept)

    def use(self, name: int) -> bool:
        """Take a block by name, found or new; False where there is no room."""
        if name in self.users:
            self.users[name] += 1
            return True
        if name in self.kept:
            del self.kept[name]
        elif self.free:
            self.free -= 1
        elif self.kept:
            self.kept.popitem(last=False)
        else:
            return False
        self.users[name] = 1
        return True

    def leave(self, names: Sequence[int]) -> None:
        """Leave blocks, the last first, so that beginnings are kept longest."""
        for name in reversed(names):
            self.users[name] -= 1
            if not self.users[name]:
                del self.users[name]
                self.kept[name] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the referee saw after its warm-up. [1/s], [1], [sequences]"""

    requests_per_s: float
    hit_share: float
    sequences: float


class Referee:
    """One replica that serves requests in the order they come."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._block = int(replica.calibration.block_tokens)
        self._budget = float(replica.calibration.step_token_budget_tokens)
        self._most = float(replica.calibration.max_sequences)
        block_bytes = float(np.ravel(sequence_bytes(replica, float(self._block)))[0])
        self.blocks = Blocks(int(memory_budget(replica).kv_bytes[0, 0] // block_bytes))
        self.waiting: deque[Asked] = deque()
        self.running: list[Asked] = []
        self._done: list[tuple[float, int, int]] = []

    def serve(self, asked: Sequence[Asked], *, warm_up: int, until_s: float = inf) -> Seen:
        """Serve all; the first `warm_up`, and those after `until_s` or the last wait, are not counted."""
        coming = deque(asked)
        now_s, counted_s, together, last_came_s = 0.0, 0.0, 0.0, 0.0
        while len(self._done) < len(asked):
            while coming and coming[0].arrives_s <= now_s:
                self.waiting.append(coming.popleft())
            if not self.running and not self.waiting:
                now_s = coming[0].arrives_s
                continue
            took_s = self._step(now_s)
            now_s += took_s
            if coming or self.waiting:
                last_came_s = now_s
            if len(self._done) >= warm_up and last_came_s == now_s < until_s:
                counted_s += took_s
                together += took_s * len(self.running)
        # The end, when nobody waits any more, is as little a steady state as the beginning.
        kept = [one for one in self._done[warm_up:] if one[0] <= min(last_came_s, until_s)]
        start_s = self._done[warm_up - 1][0]
        return Seen(
            requests_per_s=len(kept) / (kept[-1][0] - start_s),
            hit_share=sum(hits for _, hits, _ in kept) / sum(prompt for _, _, prompt in kept),
            sequences=together / counted_s if counted_s else float("nan"),
        )

    def _step(self, now_s: float) -> float:
        decoding = [one for one in self.running if one.computed >= one.tokens]
        decoding = self._grow(decoding)
        contexts = sum(one.tokens for one in decoding)
        left, chunks = self._budget - len(decoding), list[tuple[Asked, int]]()
        for one in self.running:
            if one.computed < one.tokens and left >= 1:
                chunks.append((one, int(min(left, one.tokens - one.computed))))
                left -= chunks[-1][1]
        while left >= 1 and self.waiting and len(self.running) < self._most and self._admit(self.waiting[0]):
            one = self.waiting.popleft()
            self.running.append(one)
            chunks.append((one, int(min(left, one.tokens - one.computed))))
            left -= chunks[-1][1]
        prefill = sum(size for _, size in chunks)
        seen = sum(size * (one.computed + size / 2) for one, size in chunks)
        finishing = sum(one.computed + size >= one.tokens for one, size in chunks)
        count = float(len(decoding))
        context = contexts / count if count else 0.0
        position = seen / prefill if prefill else 0.0
        batch = Batch(
            decode=count,
            decode_first=context,
            decode_last=context + 1.0,
            prefill=float(prefill),
            prefill_first=position,
            prefill_last=position + 1.0,
            sampled=count + finishing,
        )
        took_s = float(np.ravel(step_time(self._replica, batch).total_s)[0])
        for one, size in chunks:
            one.computed += size
        made = [*decoding, *(one for one, _ in chunks if one.computed >= one.tokens)]
        for one in made:
            one.made += 1
            one.computed = max(one.computed, one.tokens - 1)
            if one.made >= one.output_tokens:
                self._finish(one, now_s + took_s)
            else:
                one.computed = one.tokens
        return took_s

    def _admit(self, one: Asked) -> bool:
        """Take the blocks of a prompt; what is found of it whole and in order need not be computed."""
        needed = -(-one.tokens // self._block)
        hits = 0
        while hits < one.tokens // self._block and self.blocks.is_there(one.names[hits]):
            hits += 1
        new = needed - sum(name in self.blocks.users for name in one.names[:needed])
        if new > self.blocks.room():
            return False
        for name in one.names[:needed]:
            self.blocks.use(name)
        one.held = list(one.names[:needed])
        one.computed = min(hits * self._block, one.tokens - 1)
        if not one.made:
            one.hits = one.computed
        return True

    def _grow(self, decoding: list[Asked]) -> list[Asked]:
        """Room for one more token of each; who came last gives way and begins again."""
        kept = []
        for one in decoding:
            if one not in self.running:
                continue
            while -(-(one.tokens + 1) // self._block) > len(one.held):
                name = one.names[len(one.held)]
                if self.blocks.use(name):
                    one.held.append(name)
                    continue
                last = self.running[-1]
                self._leave(last)
                self.waiting.appendleft(last)
                if last is one:
                    break
            else:
                kept.append(one)
        return [one for one in kept if one in self.running]

    def _leave(self, one: Asked) -> None:
        self.running.remove(one)
        self.blocks.leave(one.held)
        one.held, one.computed = [], 0

    def _finish(self, one: Asked, at_s: float) -> None:
        self._leave(one)
        self._done.append((at_s, one.hits, one.prompt_tokens))
