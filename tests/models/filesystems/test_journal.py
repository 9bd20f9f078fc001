"""ext4's journal: what a transaction logs, when it is committed, what waits for it (docs/measurements.md
F).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.harness import BlockLayer
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.running.simulate import run_case
from wbsim.models.catalogue.filesystems import LOOP_EXT4
from wbsim.models.filesystems.ext4.journal import Journal
from wbsim.models.filesystems.ext4.spec import JournalSpec
from wbsim.models.interfaces import Thread
from wbsim.sim.engine import Steps
from wbsim.sim.units import KIB, MS, S


class Log:
    """A journal of *blocks* blocks on a slow device, whose partition begins at block 10.

    Its *runs* of blocks are at block 1000 by default.
    """

    def __init__(
        self, blocks: int = 300, runs: Sequence[tuple[int, int]] | None = None, **changes: Any
    ) -> None:
        self.layer = BlockLayer(era="6.17", pool="tags")
        inputs = {**LOOP_EXT4.journal.inputs(), "size": blocks * 4 * KIB, **changes}
        self.journal = Journal(
            parts=self.layer.parts,
            queue=self.layer.queue,
            spec=JournalSpec.model_validate(inputs),
            block_ns=5,
            runs=runs or ((1_000, blocks),),
            first_block=10,
        )
        self.journal.start()

    def run(self, *bodies: Any, until_ns: int = 20 * S) -> list[tuple[int, int, str]]:
        """What the device was given: first block, blocks, op."""
        for body in bodies:
            thread = self.layer.parts.thread("task")
            self.layer.env.start(thread.task, body(thread))
        self.layer.env.call_at(until_ns, 0, self.layer.env.halt)
        self.layer.env.run()
        return [
            (r.start_sector // 8 - 10, r.sectors // 8, r.op)
            for r in self.layer.device.requests
        ]  # fmt: skip


def test_a_commit_logs_each_block_once_with_descriptors_and_a_flush() -> None:
    """260 blocks, dirtied twice, from the last on: 260, two descriptors of 254 and 6, 128 blocks a request;
    the commit block alone; and all in the order of place.
    """
    log = Log(1_000)

    def body(thread: Thread) -> Steps:
        for _ in range(2):
            yield from log.journal.start_handle(thread, 30)
            log.journal.stop_handle(30, range(259, -1, -1))
        yield from log.journal.force(thread)

    requests = log.run(body)
    assert requests[:4] == [(1_000, 128, "W"), (1_128, 128, "W"), (1_256, 6, "W"), (1_262, 1, "FW")]
    assert requests[4:] == [(0, 128, "W"), (128, 128, "W"), (256, 4, "W")]
    assert log.journal.written_bytes == 263 * 4096


def test_a_journal_goes_through_its_runs_in_turn() -> None:
    """Commits of 4 blocks: two in the first run, two that reach into the second, and again from the start."""
    log = Log(12 * 8, runs=((1_000, 9), (5_000, 87)))

    def body(thread: Thread) -> Steps:
        for number in range(25):
            yield from log.journal.start_handle(thread, 2)
            log.journal.stop_handle(2, [2 * number, 2 * number + 1])
            yield from log.journal.force(thread)

    written = [(first, size) for first, size, _ in log.run(body) if first >= 1_000]
    blocks = [block for first, size in written for block in range(first, first + size)]
    assert blocks == [*range(1_000, 1_009), *range(5_000, 5_087), *range(1_000, 1_004)]


def test_a_sync_leaves_to_the_running_transaction_what_it_has() -> None:
    """Blocks 1 to 4 are committed, and 2 is dirtied again while they are: it is not written in place yet."""
    log = Log(1_000)

    def body(thread: Thread) -> Steps:
        yield from log.journal.start_handle(thread, 30)
        log.journal.stop_handle(30, [4, 3, 2, 1])
        yield from log.journal.force(thread)

    def other(thread: Thread) -> Steps:
        yield 5_000
        yield from log.journal.start_handle(thread, 30)
        log.journal.stop_handle(30, [2])

    in_place = [request for request in log.run(body, other, until_ns=S) if request[0] < 1_000]
    assert in_place == [(1, 1, "W"), (3, 2, "W")]


@pytest.mark.parametrize(("since_ns", "commit_ns"), [(0, 5 * S), (300_000_000, 6 * S), (1 * S, 6 * S)])
def test_a_transaction_is_committed_in_the_second_after_five(since_ns: int, commit_ns: int) -> None:
    """The timer is rounded up to a whole second; 30 s later the block is written in place."""
    log = Log()

    def body(thread: Thread) -> Steps:
        yield since_ns
        yield from log.journal.start_handle(thread, 3)
        log.journal.stop_handle(3, [7])

    assert log.run(body, until_ns=60 * S) == [(1_000, 2, "W"), (1_002, 1, "FW"), (7, 1, "W")]
    times = log.layer.device.times
    assert commit_ns <= times[0] < commit_ns + 1_000_000
    assert times[2] - times[1] == pytest.approx(30 * S, abs=1_000_000)


def test_a_transaction_is_at_most_a_third_of_the_journal() -> None:
    """100 blocks of 300: with 22 for overhead and 30 asked for, the handle that would come to 101 waits for a
    commit: of 49 blocks, a descriptor and the commit block.
    """
    log = Log(300)

    def body(thread: Thread) -> Steps:
        for number in range(60):
            yield from log.journal.start_handle(thread, 30)
            log.journal.stop_handle(30, [number])

    assert log.run(body, until_ns=1 * S) == [(1_000, 50, "W"), (1_050, 1, "FW")]


def test_reserved_credits_are_at_most_half_a_transaction() -> None:
    """18 for each of two extents fit into 50; the third waits until one is converted."""
    log = Log(300)
    times: list[int] = []

    def body(thread: Thread) -> Steps:
        for _ in range(3):
            yield from log.journal.reserve(thread)
            times.append(log.layer.env.now)

    def converts(thread: Thread) -> Steps:
        yield 7_000
        log.journal.release()

    log.run(body, converts)
    assert times == [0, 0, 7_000]


def test_who_needs_room_writes_the_oldest_transaction_in_place() -> None:
    """Transactions of 40 blocks and more in a journal of 300, which must keep 100 free; a block that was
    logged again is left to the newer one.
    """
    log = Log(300)
    began: list[int] = []

    def body(thread: Thread) -> Steps:
        for first in range(0, 400, 40):
            yield from log.journal.start_handle(thread, 30)
            began.append(log.layer.env.now)
            log.journal.stop_handle(30, [5_000, *range(first, first + 40)])
            log.journal.want()
            yield 1_000_000

    requests = log.run(body)
    in_place = [request for request in requests if request[0] < 1_000]
    assert in_place[0] == (0, 40, "W")
    assert (5_000, 1, "W") not in requests[: requests.index(in_place[0]) + 1]
    assert log.journal.used <= 200 + 43
    assert len(began) == 10, "every handle got its room"
    logged = [(start, blocks) for start, blocks, _ in requests if 1_000 <= start < 5_000]
    assert sum(blocks for _, blocks in logged) == 10 * 43
    assert max(start + blocks for start, blocks in logged) == 1_300, "the log goes round"


@pytest.mark.parametrize("wanted", [False, True])
def test_who_forces_during_a_commit_waits_for_it(wanted: bool) -> None:
    """The second comes 1 us after the first, into the commit, whether another is wanted or not; both go on
    once it is on disk.
    """
    log = Log(1_000)
    journal, env = log.journal, log.layer.env
    over: list[tuple[int, int]] = []

    def first(thread: Thread) -> Steps:
        yield from journal.start_handle(thread, 30)
        journal.stop_handle(30, range(260))
        yield from journal.force(thread)
        over.append((env.now, journal.written_bytes))

    def second(thread: Thread) -> Steps:
        yield 1_000
        if wanted:
            journal.want()
        yield from journal.force(thread)
        over.append((env.now, journal.written_bytes))

    log.run(first, second)
    assert len(over) == 2
    assert {written for _, written in over} == {263 * 4 * KIB}
    assert min(when for when, _ in over) > 1_000 + 260 * 5


def test_a_transaction_is_committed_at_its_own_age() -> None:
    """The first begins at 0.4 s and is forced at once; the next begins at 1.4 s. The first one's timer, at
    6 s, finds a transaction of 4.6 s, which is not old enough; its own, at 7 s, does.
    """
    log = Log(commit_interval=5 * S)
    env = log.layer.env
    env.call_at(4 * S // 10, 0, lambda: log.journal.log([1]))
    env.call_at(4 * S // 10 + 1, 0, log.journal.want)
    env.call_at(14 * S // 10, 0, lambda: log.journal.log([2]))
    log.run(until_ns=20 * S)
    commits = [
        when // 1_000_000
        for when, request in zip(log.layer.device.times, log.layer.device.requests, strict=True)
        if request.op == "FW"
    ]
    assert commits == [400, 7_000]


def test_a_handle_without_a_block_begins_no_transaction() -> None:
    """The timer is armed by the first block, six seconds later."""
    log = Log(commit_interval=S)

    def body(thread: Thread) -> Steps:
        yield from log.journal.start_handle(thread, 3)
        log.journal.stop_handle(3, ())
        yield 6 * S
        yield from log.journal.start_handle(thread, 3)
        log.journal.stop_handle(3, (1,))

    assert log.run(body)[:2] == [(1_000, 2, "W"), (1_002, 1, "FW")]
    assert 7 * S <= log.layer.device.times[0] < 7 * S + S // 10


def test_a_checkpoint_leaves_what_the_running_transaction_has() -> None:
    """Block 1 is committed, and block 2 half a second later; 1 is dirtied again 100 ns after it was to be
    written in place: it goes there after the third commit, and not before.
    """
    log = Log(expire=S)
    journal, env = log.journal, log.layer.env

    def body(thread: Thread) -> Steps:
        yield from journal.start_handle(thread, 3)
        journal.stop_handle(3, (1,))
        yield from journal.commit_log(thread)
        committed_ns = env.now
        yield S // 2
        yield from journal.start_handle(thread, 3)
        journal.stop_handle(3, (2,))
        yield committed_ns + S + 100 - env.now
        yield from journal.start_handle(thread, 3)
        journal.stop_handle(3, (1,))

    assert (1, 1, "W") not in log.run(body, until_ns=3 * S)


def test_who_waits_for_the_next_transaction_goes_on_when_one_without_a_block_is_over() -> None:
    """A third of 150 blocks is 50: 22 for overhead and 20 for a handle leave no room for 20 more, until the
    first handle ends at 5 000 and has dirtied nothing.
    """
    log = Log(150)
    began: list[int] = []

    def handle(start_ns: int, hold_ns: int) -> Any:
        def body(thread: Thread) -> Steps:
            yield start_ns
            yield from log.journal.start_handle(thread, 20)
            began.append(log.layer.env.now)
            yield hold_ns
            log.journal.stop_handle(20, ())

        return body

    assert log.run(handle(0, 5_000), handle(10, 0)) == []
    assert began == [0, 5_000]


@pytest.mark.parametrize(("convert_credits", "fit"), [(25, 2), (26, 1), (17, 2), (16, 3)])
def test_reserved_credits_may_be_just_half_a_transaction(convert_credits: int, fit: int) -> None:
    """50 of 100: two of 25 are exactly that."""
    log = Log(300, convert_credits=convert_credits)
    reserved: list[int] = []

    def body(thread: Thread) -> Steps:
        for number in range(fit + 1):
            yield from log.journal.reserve(thread)
            reserved.append(number)

    log.run(body, until_ns=S)
    assert len(reserved) == fit


@pytest.mark.parametrize(("blocks", "full"), [(46, False), (47, True)])
def test_a_journal_is_full_for_who_asks_for_a_mapping_s_credits(blocks: int, full: bool) -> None:
    """32 of 100, with 22 for overhead: 46 blocks leave just as many, 47 too few."""
    log = Log(300, map_credits=32)
    log.journal.log(range(blocks))
    assert log.journal.is_full == full


def fill(log: Log, *counts: int) -> Any:
    """A body that commits transactions of so many blocks, of which no two have the same."""

    def body(thread: Thread) -> Steps:
        for number, count in enumerate(counts):
            yield from log.journal.start_handle(thread, 30)
            log.journal.stop_handle(30, range(100 * number, 100 * number + count))
            yield from log.journal.commit_log(thread)

    return body


def ask(log: Log, at_ns: int, began: list[int], plugged: bool = False) -> Any:
    """A body that begins a handle then, with or without a plug of its own, and says when it had its room."""

    def body(thread: Thread) -> Steps:
        yield at_ns
        if plugged:
            assert thread.start_plug()
        yield from log.journal.start_handle(thread, 30)
        began.append(log.layer.env.now)
        log.journal.stop_handle(30, ())

    return body


@pytest.mark.parametrize(("last", "in_place"), [(48, 0), (49, 48)])
def test_a_third_of_the_journal_is_just_enough_for_a_transaction(last: int, in_place: int) -> None:
    """Four of 48 blocks take 50 each, with a descriptor and the commit block: 100 of 300 are left, and the
    next handle begins at once. One block less is too little: the oldest is written in place.
    """
    log, began = Log(300), list[int]()
    requests = log.run(fill(log, 48, 48, 48, last), ask(log, MS, began), until_ns=S)
    assert sum(blocks for start, blocks, _ in requests if start < 1_000) == in_place
    assert (began[0] == MS) == (in_place == 0)


def test_there_is_no_room_before_the_blocks_are_in_place() -> None:
    """62, 72 and 72 of 300 blocks are used, which leaves 94. Who asks at 1 ms writes the 60 in place, for
    10 us; who asks 1 ns later finds no more room than that, and writes the next oldest, 64 blocks at a time.
    """
    log, began = Log(300), list[int]()
    requests = log.run(fill(log, 60, 70, 70), ask(log, MS, began), ask(log, MS + 1, began), until_ns=S)
    in_place = [request for request in requests if request[0] < 1_000]
    assert in_place == [(0, 60, "W"), (100, 64, "W"), (164, 6, "W")]
    assert len(began) == 2
    assert min(began) >= MS + 10_000


def test_what_is_being_committed_takes_its_room_from_the_beginning() -> None:
    """134 of 300 blocks are used when 70 more are to be committed, which takes 350 ns before the first is
    written; who asks 100 ns after that began finds 206 used, and writes the oldest in place.
    """
    log, began = Log(300), list[int]()
    log.layer.env.call_at(MS, 0, lambda: log.journal.log(range(500, 570)))
    log.layer.env.call_at(MS, 0, log.journal.want)
    requests = log.run(fill(log, 60, 70), ask(log, MS + 100, began), until_ns=S)
    assert [request for request in requests if request[0] < 1_000] == [(0, 60, "W")]
    assert began[0] >= MS + 10_000


def test_what_is_being_committed_again_is_not_written_in_place() -> None:
    """Of the oldest transaction's 60 blocks the one in commit has the last 30, whose new content is in no log
    yet: only the others may go in place.
    """
    log, began = Log(300), list[int]()
    log.layer.env.call_at(MS, 0, lambda: log.journal.log(range(30, 100)))
    log.layer.env.call_at(MS, 0, log.journal.want)
    requests = log.run(fill(log, 60, 70), ask(log, MS + 100, began), until_ns=S)
    assert [request for request in requests if request[0] < 1_000] == [(0, 30, "W")]


def test_who_makes_room_under_a_plug_of_its_own_sends_what_it_holds() -> None:
    """Else it would wait for writes that nobody has been given."""
    log, began = Log(300), list[int]()
    log.run(fill(log, 60, 70, 70), ask(log, MS, began, plugged=True), until_ns=S)
    assert len(began) == 1


@pytest.mark.fullsize
def test_the_default_journal_has_room_for_half_a_million_files() -> None:
    """Empty files in one directory on a disk: with 1 GiB the processor decides, with 64 MiB the journal."""
    walls = []
    for size in ("", 'filesystem.journal.size = "64 MiB"'):
        text = f"""
title = "many empty files in one directory"
[scenario]
machine.like = "desktop-2012"
kernel.like = "6.8"
filesystem.like = "ext4"
programs.it = "fs_mark -k -S0 -n 500000 -s 0 -L 1 -d /0"
{size}
"""
        (case,) = parse(text, "files.toml").cases
        of = run_case(case, 1, 0)
        walls.append(of.wall_time)
        if not size:
            assert of.wall_time < 1.1 * (of.system_cpu_time + of.user_cpu_time)
    assert walls[1] > 3 * walls[0]
