"""Where each block was used last, for blocks numbered in any way."""

from typing import Final

import numpy as np

from costsvc.engine.dominance import Integers

# Numbers below it are their own place in a table; memory that nothing wrote to is never taken.
_DIRECT: Final = 2**28
_LEVEL_RATIO: Final = 2


class BlockTable:
    """Last position of every block seen. Positions are counted from 0 over the whole trace."""

    def __init__(self) -> None:
        self._numbered = _Positions()
        self._hashed = _Positions()
        self._hashes = _Numbering()
        self.distinct_blocks = 0

    def replace(self, blocks: Integers, position: int) -> Integers:
        """Positions before each use, -1 for a first one; `blocks` are used from `position` on."""
        used = position + np.arange(len(blocks))
        is_hash = (blocks >= _DIRECT) | (blocks < 0)
        if not is_hash.any():
            last = self._numbered.replace(blocks, used)
        else:
            last = np.empty(len(blocks), dtype=np.int64)
            last[~is_hash] = self._numbered.replace(blocks[~is_hash], used[~is_hash])
            last[is_hash] = self._hashed.replace(self._hashes.numbers(blocks[is_hash]), used[is_hash])
        self.distinct_blocks += int(np.count_nonzero(last < 0))
        return last


class _Positions:
    """Last positions by place, plus one, so that memory as it comes means never."""

    def __init__(self) -> None:
        self._after = np.zeros(0, dtype=np.int64)

    def replace(self, places: Integers, used: Integers) -> Integers:
        if not len(places):
            return np.zeros(0, dtype=np.int64)
        self._grow(int(places.max()) + 1)
        # Place and number in one word sort faster than an indirect sort.
        bits = len(places).bit_length()
        words = np.sort(places << bits | np.arange(len(places)))
        number, place = words & ((1 << bits) - 1), words >> bits
        is_again = np.append(False, place[1:] == place[:-1])
        before = np.where(is_again, used[np.append(0, number[:-1])], self._after[place] - 1)
        is_last = ~np.append(is_again[1:], False)
        self._after[place[is_last]] = used[number[is_last]] + 1
        last: Integers = np.empty_like(before)
        last[number] = before
        return last

    def _grow(self, size: int) -> None:
        if size > len(self._after):
            grown = np.zeros(max(size, 2 * len(self._after)), dtype=np.int64)
            grown[: len(self._after)] = self._after
            self._after = grown


class _Numbering:
    """Numbers from 0 for arbitrary integers, in sorted levels of growing size."""

    def __init__(self) -> None:
        self._levels: list[tuple[Integers, Integers]] = []
        self._count = 0

    def numbers(self, keys: Integers) -> Integers:
        """The number of each key; new ones get the next."""
        unique, place = np.unique(keys, return_inverse=True)
        found = np.full(len(unique), -1, dtype=np.int64)
        for known, number in self._levels:
            at = np.minimum(np.searchsorted(known, unique), len(known) - 1)
            found = np.where(known[at] == unique, number[at], found)
        new = np.flatnonzero(found < 0)
        found[new] = self._count + np.arange(len(new))
        self._count += len(new)
        if len(new):
            self._add(unique[new], found[new])
        return found[place]

    def _add(self, keys: Integers, numbers: Integers) -> None:
        while self._levels and len(self._levels[-1][0]) < _LEVEL_RATIO * len(keys):
            more_keys, more_numbers = self._levels.pop()
            keys, numbers = np.append(more_keys, keys), np.append(more_numbers, numbers)
            order = np.argsort(keys)
            keys, numbers = keys[order], numbers[order]
        self._levels.append((keys, numbers))
