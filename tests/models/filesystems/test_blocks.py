"""The law that each block is in one extent, where the extents are checked in two halves."""

from __future__ import annotations

import numpy as np
import pytest

from wbsim.models.filesystems.blocks import check_blocks
from wbsim.sim.invariants import LawBroken


def check(*extents: tuple[int, int]) -> None:
    """Check *extents* of 1 000 blocks: those from block 100 on after the others."""
    check_blocks("d", 1_000, lambda: [np.array(extents, np.int64)], 100)


def test_extent_over_the_middle_shares_no_later_block() -> None:
    """The extent of 20 blocks from 90 on ends at 110."""
    check((90, 20), (110, 5))
    with pytest.raises(LawBroken, match="d: blocks belong to two files"):
        check((90, 20), (109, 5))


def test_second_half_may_begin_without_an_extent_before_it() -> None:
    """No extent begins below block 100."""
    check((100, 5), (105, 895))
    with pytest.raises(LawBroken, match="d: blocks belong to two files"):
        check((100, 5), (104, 5))
