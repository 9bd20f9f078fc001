"""The law of blocks: each is in one extent at most, of a file or of what is free.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sim.laws import require

Extents = Callable[[], Iterable[NDArray[np.int64]]]
"""All of them, in arrays (n x 2) of first blocks and sizes, as often as it is called."""
_AT_ONCE: Final = 1 << 20
"""How many extents are looked at together."""
_FAR: Final = 1 << 62


def check_blocks(name: str, blocks: int, extents: Extents, middle: int) -> None:
    """No two *extents* of filesystem *name* share a block, and all lie within its *blocks*.

    Those from block *middle* on are looked at after the others, as all together take more memory.

    Raises:
        LawBroken: some do, or do not.
    """
    most = (1 << 63) // (1 << blocks.bit_length()) - 1  # in one number: first block, and size
    numbers = np.empty(sum(map(len, extents())), np.int64)
    ended = 0
    for first, end in ((-_FAR, middle), (middle, _FAR)):
        filled = 0
        for table in extents():
            half = table[(table[:, 0] >= first) & (table[:, 0] < end)]
            numbers[filled : filled + len(half)] = half[:, 0] * (most + 1) + np.minimum(half[:, 1], most)
            filled += len(half)
        numbers[:filled].sort()
        for at in range(0, filled, _AT_ONCE):
            starts, sizes = divmod(numbers[at : min(at + _AT_ONCE, filled)], most + 1)
            ends = starts + sizes
            within = bool(starts[0] >= 0 and ends[-1] <= blocks)
            require(within, f"{name}: its blocks are the {blocks} that it has")
            twice = starts[starts < np.append(ended, ends[:-1])]
            require(not len(twice), f"{name}: no block is in two files, or in one and free: {twice[:3]}")
            ended = int(ends[-1])
