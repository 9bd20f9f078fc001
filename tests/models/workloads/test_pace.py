"""The pace of a program: once it is steady, the time of the remaining files is reckoned."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wbsim.models.workloads.program import Pace

# The tests replace the clock of the environment.
pytestmark = pytest.mark.source


def counted(total: int, room: int | None = None, full_ns: int = 10) -> tuple[int, Pace]:
    """Return the number of files that were done of *total*, and the pace.

    A file takes 10 ns, 3 of them in the kernel, and adds an inode.  When the pace is steady, memory has room
    for *room* more inodes; without *room* memory is full.  Then every other window takes *full_ns* a file.
    """
    env: Any = SimpleNamespace(now=0)
    inodes: Any = SimpleNamespace(cached=0, reclaiming=room is None, room_left=room or 0)

    def add_cached(more: int) -> None:
        inodes.cached += more
        inodes.reclaiming = True

    inodes.add_cached = add_cached
    pace = Pace(env, total, lambda: 3 * env.now // 10, [inodes])
    done = 0
    while not pace.is_over:
        env.now += full_ns if inodes.reclaiming and done // 8_192 % 2 else 10
        inodes.cached += not inodes.reclaiming
        done += 1
        pace.count()
    return done, pace


@pytest.mark.parametrize("more", [1, 5, 1_000_000])
def test_remaining_files_are_reckoned_at_the_steady_pace(more: int) -> None:
    """After 17 windows of 8 192 files, the times of the other files are reckoned."""
    windows = 17 * 8_192
    done, pace = counted(windows + more)
    assert done == windows
    assert pace.reckoned == (more, 10 * more, 3 * more)


def test_full_memory_ends_the_first_reckoned_part() -> None:
    """The files that fill memory are reckoned first.

    The program then runs for seventeen more windows, and their pace is that of the other files.
    """
    windows = 17 * 8_192
    done, pace = counted(3 * windows, room=10_000)
    assert done == 2 * windows
    assert pace.reckoned.files == windows
    assert pace.reckoned.ns == 10 * windows


def test_program_without_a_steady_pace_ends_with_its_last_file() -> None:
    """Memory is full after the reckoned files, and from then on the pace changes with every window.

    Each file is either done or reckoned.
    """
    windows = 17 * 8_192
    done, pace = counted(3 * windows, room=10_000, full_ns=20)
    assert pace.reckoned.files == 10_000
    assert done == 3 * windows - 10_000
