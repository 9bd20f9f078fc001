"""Calls of any size at any place: their pages, their times, their turns, and their end."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from tests.models.syscalls import test_stream
from wbsim.models.syscalls.block_stream import Blocks, BlockStream
from wbsim.models.syscalls.stream import Calls
from wbsim.sim.engine import Steps
from wbsim.sim.entry import FAR_NS

Places = list[tuple[int, int]]
PAGE = 4_096
PLAIN = Calls()


class Stage(test_stream.Stage):
    """A process that writes the blocks *files*, each a place and a size; a call has the factor 1.

    A call takes 2 ns, and 10 ns for each page that it fills.
    """

    def __init__(self, *files: Places, calls: Calls = PLAIN, until_ns: int = FAR_NS) -> None:
        super().__init__(Calls(), files=len(files))
        self.factors = [1.0] * 1_000
        process: Any = self
        blocks = [
            Blocks(np.array([place for place, _ in file]), np.array([size for _, size in file]))
            for file in files
        ]
        self.blocks = BlockStream(self.env, process, self.inodes, blocks, calls, until_ns)

    def vary(self) -> float:
        """Draw the next factor."""
        return self.factors.pop(0)

    def make(self, count: int) -> list[tuple[int, int, list[int]]]:
        """Make *count* calls, and return the end, the file and the pages of each."""
        self.env.start(self.env.task("writer"), self.blocks.write(count))
        self.env.run()
        return [(end, number, pages) for _, end, number, pages, _ in self.log]


@pytest.mark.parametrize(
    ("place", "size", "pages"),
    [
        (0, 1, [0]), (0, PAGE, [0]), (0, PAGE + 1, [0, 1]), (100, 1, [0]), (PAGE - 1, 1, [0]),
        (PAGE - 1, 2, [0, 1]), (PAGE, PAGE, [1]), (PAGE, 2 * PAGE, [1, 2]), (2 * PAGE, 1, [2]),
        (6_000, 10_000, [1, 2, 3]), (6_000, 10_385, [1, 2, 3, 4]), (6_000, 10_384, [1, 2, 3]),
    ],
)  # fmt: skip
def test_call_covers_each_page_that_it_touches(place: int, size: int, pages: list[int]) -> None:
    """From the page of its first byte to the page of its last one."""
    stage = Stage([(place, size)])
    assert [entry for _, _, entry in stage.make(1)] == [pages]
    assert (stage.blocks.total, stage.blocks.done, stage.blocks.written_bytes) == (1, 1, size)


@pytest.mark.parametrize(
    ("place", "size", "ns"),
    [
        (0, PAGE, 12), (0, PAGE // 2, 7), (1_000, PAGE // 2, 7), (0, 2 * PAGE, 22),
        (2_048, 3 * PAGE, 32), (PAGE - 1, 2, 2), (0, 410, 3), (0, 409, 2),
    ],
)  # fmt: skip
def test_bytes_of_a_call_take_their_share_of_pages(place: int, size: int, ns: int) -> None:
    """2 ns and 10 ns for each 4 096 bytes, however many pages they lie in; complete nanoseconds count."""
    stage = Stage([(place, size)])
    assert [end for end, _, _ in stage.make(1)] == [ns]
    assert stage.took() == {ns: 1}


def test_each_call_has_its_own_factor() -> None:
    """It holds for the program's own time, too, which is no part of the latency."""
    stage = Stage([(0, PAGE)] * 3, calls=Calls(user_ns=5, system_ns=3))
    stage.factors[:3] = [1.0, 2.0, 0.5]
    assert [end for end, _, _ in stage.make(3)] == [20, 60, 60 + 2 + 1 + 6]
    assert stage.took() == {12: 1, 24: 1, 6: 1}


def test_times_of_a_call_go_to_their_accounts() -> None:
    """The program's user time, its time in other calls, and write(2) itself."""
    stage, heard = Stage([(0, PAGE)], calls=Calls(user_ns=5, system_ns=3)), list[tuple[int, ...]]()
    runs = stage.runs

    def hears(*ns: int) -> Steps:
        heard.append(ns)
        return runs(*ns)

    stage.runs = hears  # type: ignore[method-assign]
    stage.make(1)
    assert heard == [(5, 3, 12)]


def test_time_of_interrupts_belongs_to_the_call() -> None:
    """The task owes 7 ns, which are paid with the call's own 12."""
    stage = Stage([(0, PAGE)] * 2, calls=Calls(user_ns=100))
    stage.task.owed_ns = 7
    stage.runs = test_stream.pays_what_it_owes(stage)  # type: ignore[method-assign]
    stage.make(2)
    assert stage.took() == {19: 1, 12: 1}


def test_files_take_turns_until_they_are_complete() -> None:
    """Files of three, one and two blocks; the places of a file need no order."""
    stage = Stage([(8_192, PAGE), (0, PAGE), (4_096, PAGE)], [(0, 2 * PAGE)], [(0, PAGE), (4_096, PAGE)])
    assert [(number, pages) for _, number, pages in stage.make(6)] == [
        (0, [2]), (1, [0, 1]), (2, [0]), (0, [0]), (2, [1]), (0, [1]),
    ]  # fmt: skip
    assert (stage.blocks.total, stage.blocks.done, stage.blocks.written_bytes) == (6, 6, 7 * PAGE)


def test_stream_goes_on_where_it_was_left() -> None:
    """Two calls, a sync that has the turn of the third file, and three calls more."""
    stage = Stage(*([(0, PAGE), (4_096, PAGE)] for _ in range(3)))
    assert [number for _, number, _ in stage.make(2)] == [0, 1]
    assert stage.blocks.done == 2
    assert stage.blocks.pass_turn() is stage.inodes[2]
    assert [(number, pages) for _, number, pages in stage.make(3)][2:] == [(0, [1]), (1, [1]), (2, [0])]


def test_complete_file_of_blocks_is_passed_by_a_sync() -> None:
    """Each of two files has a call, and then the first one is complete."""
    stage = Stage([(0, PAGE)], [(0, PAGE), (4_096, PAGE)])
    stage.make(2)
    assert stage.blocks.pass_turn() is stage.inodes[1]


@pytest.mark.parametrize(("until_ns", "calls"), [(0, 0), (1, 1), (12, 1), (13, 2), (24, 2), (25, 3), (99, 4)])
def test_no_block_begins_at_the_end(until_ns: int, calls: int) -> None:
    """A call of 12 ns that has begun goes on."""
    stage = Stage([(number * PAGE, PAGE) for number in range(4)], until_ns=until_ns)
    assert len(stage.make(4)) == stage.blocks.done == calls
    assert stage.env.now == 12 * calls


def test_throttle_follows_the_call_that_is_due() -> None:
    """Two pages may be dirty: the call that makes the second one is held for 500 ns."""
    stage = Stage([(number * PAGE, PAGE) for number in range(3)])
    stage.spare = 2
    assert [end for end, _, _ in stage.make(3)] == [12, 24, 536]
    assert stage.balances == 1
    assert (stage.latencies.write.count, stage.latencies.write.max_ns) == (3, 512)
    assert stage.latencies.write.total_ns == 536


@pytest.mark.parametrize(("sync", "datasync"), [("O_SYNC", False), ("O_DSYNC", True)])
def test_synchronous_block_waits_within_its_latency(
    sync: Literal["O_SYNC", "O_DSYNC"], datasync: bool
) -> None:
    """The data of the file follows each call, behind the throttle."""
    stage = Stage([(0, PAGE)], [(0, PAGE)], calls=Calls(sync=sync))
    stage.spare = 1
    assert [(end, number) for end, number, _ in stage.make(2)] == [(12, 0), (554, 1)]
    assert stage.synced == [(542, 0, datasync), (584, 1, datasync)]
    assert (stage.latencies.write.min_ns, stage.latencies.write.max_ns) == (42, 542)


def test_call_without_a_flag_does_not_sync() -> None:
    """No call does, with any number of files."""
    stage = Stage([(0, PAGE)], [(0, PAGE)])
    stage.make(2)
    assert stage.synced == []


def test_waits_for_locks_and_processors_belong_to_the_call() -> None:
    """The lock of the file takes 40 ns, and the return to the program 6 ns."""
    stage = Stage([(0, PAGE)] * 2)
    entry: Any = stage
    put = stage.put

    def slow_put(*arguments: Any) -> Steps:
        yield 40
        put(*arguments)

    entry.put, entry.returns = slow_put, lambda: (ns for ns in (6,))
    assert [end for end, _, _ in stage.make(2)] == [52, 110]
    assert stage.took() == {58: 2}


@pytest.mark.parametrize(
    ("count", "calls"),
    [(1, 1), (100, 1), (101, 2), (300, 2), (301, 3), (600, 3), (601, 4), (1_000, 4), (9_999, 4)],
)
def test_calls_for_bytes_follow_each_other_in_turn(count: int, calls: int) -> None:
    """The sizes in turn: 100, 200, 300 and, of the first file alone, 400; more bytes take all calls."""
    stage = Stage([(0, 100), (0, 300), (0, 400)], [(0, 200)])
    assert (stage.blocks.steps_for(count), stage.blocks.total_bytes) == (calls, 1_000)


def test_call_to_a_shared_file_waits_for_its_lock() -> None:
    """The program's own 5 ns come first; 40 ns of waiting are a part of each call of 12 ns."""
    stage = Stage([(0, PAGE), (PAGE, PAGE)], calls=Calls(user_ns=5))
    stage.i_rwsem = stage
    assert [end for end, _, _ in stage.make(2)] == [57, 114]
    assert (stage.took(), stage.holds) == ({52: 2}, 24)
