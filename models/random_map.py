"""fio's random map: the order in which a file's blocks are written at random, each once.

A random block each time or, if it was written before, the next that was not (get_next_rand_offset in fio's io_u.c,
axmap_next_free): so blocks cluster as a file fills up, as in a hash table with linear probing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.compiled import compiled

_DRAWS: Final = 4_096
"""How many are drawn at a time."""


class RandomMap:
    """The order of one file of *blocks* blocks; 4 B each."""

    def __init__(self, dice: np.random.Generator, blocks: int) -> None:
        self._dice = dice
        self._draws = dice.integers(0, blocks, 0)
        # Of a written block: one at or before the next free one.  Searches shorten the way.
        self._following = np.arange(blocks, dtype=np.int32)

    def take(self, count: int) -> NDArray[np.int64]:
        """The next *count* blocks; no more than are left."""
        while len(self._draws) < count:
            more = self._dice.integers(0, len(self._following), _DRAWS)
            self._draws = np.concatenate([self._draws, more])
        taken, self._draws = self._draws[:count], self._draws[count:]
        next_free(self._following, taken)
        return taken


@compiled
def next_free(following: NDArray[np.int32], draws: NDArray[np.int64]) -> None:
    """Replace each of *draws* by the block that is written, in turn."""
    blocks = len(following)
    for i in range(len(draws)):
        block = draws[i]
        while following[block] != block:
            block = following[block]
        at = draws[i]
        while following[at] != at:
            following[at], at = block, following[at]
        draws[i] = block
        following[block] = block + 1 if block + 1 < blocks else 0
