"""The law of blocks: what it allows, and what breaks it, on either side of the middle and across it."""

from __future__ import annotations

import numpy as np
import pytest

import models.filesystems.block_law
from models.filesystems.block_law import check_blocks
from sim.laws import LawBroken

FREE = [(0, 10), (60, 40)]
FILE = [(10, 5), (50, 10), (20, 30)]
"""Not in the order of the disk; (15, 5) is nobody's."""


def check(*tables: list[tuple[int, int]], middle: int = 40, blocks: int = 100) -> None:
    """Of a disk called d."""
    arrays = [np.array(table, np.int64).reshape(-1, 2) for table in tables]
    check_blocks("d", blocks, lambda: arrays, middle)


@pytest.mark.parametrize("at_once", [1, 2, 1 << 20])
@pytest.mark.parametrize("middle", [0, 10, 40, 50, 100])
def test_blocks_that_are_each_in_one_extent_keep_the_law(
    monkeypatch: pytest.MonkeyPatch, middle: int, at_once: int
) -> None:
    """Also where there are none at all; extents may touch."""
    monkeypatch.setattr(models.filesystems.block_law, "_AT_ONCE", at_once)
    check(FREE, FILE, middle=middle)
    check([], middle=middle)


@pytest.mark.parametrize("at_once", [1, 2, 1 << 20])
@pytest.mark.parametrize("middle", [0, 14, 40, 59, 100])
@pytest.mark.parametrize("twice", [(14, 2), (20, 1), (59, 1), (45, 6), (9, 1), (99, 1)])
def test_a_block_in_two_extents_breaks_it(
    monkeypatch: pytest.MonkeyPatch, twice: tuple[int, int], middle: int, at_once: int
) -> None:
    """Of two files, or of one and what is free."""
    monkeypatch.setattr(models.filesystems.block_law, "_AT_ONCE", at_once)
    with pytest.raises(LawBroken, match="d: no block is in two files, or in one and free"):
        check(FREE, FILE, [twice], middle=middle)


@pytest.mark.parametrize("outside", [(-1, 1), (100, 1), (15, 1 << 40)])
@pytest.mark.parametrize("middle", [0, 40, 100])
def test_a_block_that_is_not_there_breaks_it(outside: tuple[int, int], middle: int) -> None:
    """Before the first, behind the last."""
    with pytest.raises(LawBroken, match="d: "):
        check(FILE, [outside], middle=middle)
    with pytest.raises(LawBroken, match="d: its blocks are the 100 that it has"):
        check([outside], middle=middle)
