"""The law that no block has two owners: tables that keep it or break it, on both sides of the middle."""

from __future__ import annotations

import numpy as np
import pytest

from wbsim.models.filesystems.blocks import check_blocks
from wbsim.sim.invariants import LawBroken

FREE = [(0, 10), (60, 40)]
FILE = [(10, 5), (50, 10), (20, 30)]
"""The extents of a file, not in disk order.  The extent (15, 5) has no owner."""


def check(*tables: list[tuple[int, int]], middle: int = 40, blocks: int = 100) -> None:
    """Check *tables* of extents of a disk called d."""
    arrays = [np.array(table, np.int64).reshape(-1, 2) for table in tables]
    check_blocks("d", blocks, lambda: arrays, middle)


@pytest.mark.parametrize("middle", [0, 10, 40, 50, 100])
def test_blocks_that_are_each_in_one_extent_keep_the_law(middle: int) -> None:
    """Extents that touch keep the law, and a disk without extents does, too."""
    check(FREE, FILE, middle=middle)
    check([], middle=middle)


@pytest.mark.parametrize("middle", [0, 14, 40, 59, 100])
@pytest.mark.parametrize("twice", [(14, 2), (20, 1), (59, 1), (45, 6), (9, 1), (99, 1), (0, 100)])
def test_block_in_two_extents_breaks_the_law(twice: tuple[int, int], middle: int) -> None:
    """A block may not be in two files, or in a file and free."""
    with pytest.raises(LawBroken, match="d: blocks belong to two files, or to a file and the free space"):
        check(FREE, FILE, [twice], middle=middle)


def test_law_holds_for_large_extents() -> None:
    """The law holds on a disk of 500 TB."""
    blocks = 500 * 10**12 // 4096
    check([(0, 1 << 28)], [(1 << 28, blocks - (1 << 28))], middle=1 << 27, blocks=blocks)
    with pytest.raises(LawBroken, match="d: blocks belong to two files"):
        check([(0, 1 << 28)], [(1 << 27, 5)], middle=1 << 26, blocks=blocks)


@pytest.mark.parametrize(
    "outside", [(-1, 1), (100, 1), (15, 1 << 40), (99, 2), (2048, 1), ((1 << 62) + 5, 1)]
)
@pytest.mark.parametrize("middle", [0, 40, 100])
def test_block_outside_the_disk_breaks_the_law(outside: tuple[int, int], middle: int) -> None:
    """An extent may not begin before the first block or end behind the last one."""
    with pytest.raises(LawBroken, match="d: an extent lies outside its 100 blocks"):
        check([(10, 5)], [outside], middle=middle)
