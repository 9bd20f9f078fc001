"""fio's random map: the order in which a file's blocks are written at random, each once.

A random block each time or, if it was written before, the next that was not (get_next_rand_offset in fio's
io_u.c, axmap_next_free): so blocks cluster as a file fills up, as in a hash table with linear probing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from wbsim.models.arrays.compiled import compiled

_BITS: Final = 64
_DRAWS: Final = 4_096
"""How many are drawn at a time."""


class RandomMap:
    """The order of one file of *blocks* blocks; a bit each."""

    def __init__(self, dice: np.random.Generator, blocks: int) -> None:
        self._dice = dice
        self._blocks = blocks
        self._draws = dice.integers(0, blocks, 0)
        self._written = np.zeros(
            -(-blocks // _BITS), np.int64
        )  # what lies behind the last block counts as written
        if blocks % _BITS:
            self._written[-1] = np.int64(-1) << np.int64(blocks % _BITS)

    def take(self, count: int) -> NDArray[np.int64]:
        """The next *count* blocks; no more than are left."""
        while len(self._draws) < count:
            more = self._dice.integers(0, self._blocks, _DRAWS)
            self._draws = np.concatenate([self._draws, more])
        taken, self._draws = self._draws[:count], self._draws[count:]
        next_free(self._written, taken)
        return taken


@compiled
def next_free(written: NDArray[np.int64], draws: NDArray[np.int64]) -> None:
    """Replace each of *draws* by the block that is written, in turn."""
    for i in range(len(draws)):
        word, bit = divmod(draws[i], _BITS)
        while written[word] == -1 or (written[word] >> bit) & 1:
            if written[word] >> bit == -1 or bit == _BITS - 1:  # all from here on are written
                word, bit = word + 1 if word + 1 < len(written) else 0, 0
            else:
                bit += 1
        written[word] |= np.int64(1) << np.int64(bit)
        draws[i] = word * _BITS + bit
