"""A pace that is steady: what is left is reckoned, and no file is done twice or not at all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wbsim.models.workloads.processes import FEWEST, WINDOW, Pace

# Their clock is the test's own.
pytestmark = pytest.mark.source


def counted(total: int, room: int | None = None) -> tuple[int, Pace]:
    """How many files of *total* were done, each in 10 ns, 3 of them in the kernel; memory has *room* for so
    many more inodes when the pace is steady, one for each file, or is full.
    """
    env: Any = SimpleNamespace(now=0)
    inodes: Any = SimpleNamespace(cached=0, reclaiming=room is None, room_left=room or 0)

    def add_cached(more: int) -> None:
        inodes.cached += more
        inodes.reclaiming = True

    inodes.add_cached = add_cached
    pace = Pace(env, total, lambda: 3 * env.now // 10, [inodes])
    done = 0
    while not pace.over:
        env.now += 10
        inodes.cached += not inodes.reclaiming
        done += 1
        pace.count()
    return done, pace


@pytest.mark.parametrize("more", [1, 5, 1_000_000])
def test_what_is_left_is_reckoned_at_the_pace_that_was(more: int) -> None:
    """After seventeen windows; with their wall and system time."""
    windows = (FEWEST + 1) * WINDOW
    done, pace = counted(windows + more)
    assert done == windows
    assert pace.reckoned == (more, 10 * more, 3 * more)


def test_until_memory_is_full_a_part_is_reckoned() -> None:
    """Then it goes on, for seventeen windows more, and the rest is reckoned at the pace of these."""
    windows = (FEWEST + 1) * WINDOW
    done, pace = counted(3 * windows, room=10_000)
    assert done == 2 * windows
    assert pace.reckoned.files == windows
    assert pace.reckoned.ns == 10 * windows
