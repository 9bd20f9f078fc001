"""The journal of ext4: logged blocks, commits, and the waits for both (docs/measurements.md F)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.harness import BlockLayer
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.running.simulate import run_case
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.filesystems.ext4.journal import Journal
from wbsim.models.filesystems.ext4.spec import JournalSpec
from wbsim.models.interfaces import Thread
from wbsim.sim.engine import Steps
from wbsim.sim.units import KIB, MS, S


class Log:
    """A journal of *blocks* blocks on a slow device, whose partition begins at block 10.

    The default of *runs* is one run at block 1000.
    """

    def __init__(
        self, blocks: int = 300, runs: Sequence[tuple[int, int]] | None = None, **changes: Any
    ) -> None:
        self.layer = BlockLayer(era="6.17", pool="tags")
        inputs = {**FILESYSTEMS["loop-ext4"].journal.inputs(), "size": blocks * 4 * KIB, **changes}
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
        """Run *bodies*, and return the requests of the device: first block, blocks, op."""
        for body in bodies:
            thread = self.layer.parts.thread("task")
            self.layer.env.start(thread.task, body(thread))
        self.layer.env.call_at(until_ns, 0, self.layer.env.halt)
        self.layer.env.run()
        return [
            (r.start_sector // 8 - 10, r.sectors // 8, r.op)
            for r in self.layer.device.requests
        ]  # fmt: skip


def test_commit_logs_each_block_once_and_flushes_the_device() -> None:
    """260 blocks are dirtied twice, from the last block on.

    * The log gets 260 blocks and two descriptors, of 254 and 6 blocks, in requests of at most 128 blocks.
    * The log gets the commit block in one more request, with a flush.
    * All blocks are written in place, in the order of place.
    """
    log = Log(1_000)

    def body(thread: Thread) -> Steps:
        for _ in range(2):
            yield from log.journal.start_handle(thread, 30)
            log.journal.stop_handle(30, range(259, -1, -1))
        yield from log.journal.force(thread)

    requests = log.run(body)
    assert requests[:4] == [(1_000, 128, "W"), (1_128, 128, "W"), (1_256, 6, "W"), (1_262, 1, "FWF")]
    assert requests[4:] == [(0, 128, "W"), (128, 128, "W"), (256, 4, "W")]
    assert log.journal.written_bytes == 263 * 4096


def test_a_journal_goes_through_its_runs_in_turn() -> None:
    """25 commits of 4 blocks fill the runs of 9 and 87 blocks, and begin again with the first run."""
    log = Log(12 * 8, runs=((1_000, 9), (5_000, 87)))

    def body(thread: Thread) -> Steps:
        for number in range(25):
            yield from log.journal.start_handle(thread, 2)
            log.journal.stop_handle(2, [2 * number, 2 * number + 1])
            yield from log.journal.force(thread)

    written = [(first, size) for first, size, _ in log.run(body) if first >= 1_000]
    blocks = [block for first, size in written for block in range(first, first + size)]
    assert blocks == [*range(1_000, 1_009), *range(5_000, 5_087), *range(1_000, 1_004)]


def test_sync_leaves_the_blocks_of_the_running_transaction() -> None:
    """Blocks 1 to 4 are committed, and block 2 is dirtied again during the commit.

    Block 2 is not written in place yet.
    """
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
def test_commit_timer_is_rounded_up_to_a_second(since_ns: int, commit_ns: int) -> None:
    """The timer expires at the first full second after 5 s; 30 s later the block is written in place."""
    log = Log()

    def body(thread: Thread) -> Steps:
        yield since_ns
        yield from log.journal.start_handle(thread, 3)
        log.journal.stop_handle(3, [7])

    assert log.run(body, until_ns=60 * S) == [(1_000, 2, "W"), (1_002, 1, "FWF"), (7, 1, "W")]
    times = log.layer.device.times
    assert commit_ns <= times[0] < commit_ns + 1_000_000
    assert times[2] - times[1] == pytest.approx(30 * S, abs=1_000_000)


def test_a_transaction_is_at_most_a_third_of_the_journal() -> None:
    """A third of 300 blocks is 100: 22 for overhead, 30 for the new handle, and the logged blocks.

    A handle that would bring the sum to 101 waits for a commit: 49 blocks, a descriptor and the commit block.
    """
    log = Log(300)

    def body(thread: Thread) -> Steps:
        for number in range(60):
            yield from log.journal.start_handle(thread, 30)
            log.journal.stop_handle(30, [number])

    assert log.run(body, until_ns=1 * S) == [(1_000, 50, "W"), (1_050, 1, "FWF")]


def test_reserved_credits_are_at_most_half_a_transaction() -> None:
    """18 credits for each of two extents fit into 50; the third extent waits until one is converted."""
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


def test_task_without_room_writes_the_oldest_transaction_in_place() -> None:
    """Transactions have 41 blocks, and the journal of 300 blocks must keep 100 of them free.

    A block that a newer transaction has logged again is left to that transaction.
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
    assert log.journal.used_blocks <= 200 + 43
    assert len(began) == 10, "every handle must begin"
    logged = [(start, blocks) for start, blocks, _ in requests if 1_000 <= start < 5_000]
    assert sum(blocks for _, blocks in logged) == 10 * 43
    assert max(start + blocks for start, blocks in logged) == 1_300, "the log wraps around at its end"


@pytest.mark.parametrize("wanted", [False, True])
def test_force_during_a_commit_waits_for_the_commit(wanted: bool) -> None:
    """The second task comes 1 us after the first, during the commit; another commit may be *wanted*.

    Both tasks continue when the commit is on disk.
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
    """The timer of a transaction does not commit the next one.

    t        event
    0.4 s    the first transaction begins, and is committed at once
    1.4 s    the second transaction begins
    6 s      the timer of the first finds a transaction of 4.6 s, which is too young
    7 s      the timer of the second commits the second transaction
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
        if request.op == "FWF"
    ]
    assert commits == [400, 7_000]


def test_a_handle_without_a_block_begins_no_transaction() -> None:
    """The first block, six seconds later, arms the timer."""
    log = Log(commit_interval=S)

    def body(thread: Thread) -> Steps:
        yield from log.journal.start_handle(thread, 3)
        log.journal.stop_handle(3, ())
        yield 6 * S
        yield from log.journal.start_handle(thread, 3)
        log.journal.stop_handle(3, (1,))

    assert log.run(body)[:2] == [(1_000, 2, "W"), (1_002, 1, "FWF")]
    assert 7 * S <= log.layer.device.times[0] < 7 * S + S // 10


def test_checkpoint_leaves_the_blocks_of_the_running_transaction() -> None:
    """Block 1 may be written in place only after the third commit.

    t               event
    0               block 1 is committed
    0.5 s           block 2 is dirtied
    1 s             block 1 is due in place; jbd2 commits block 2 first
    1 s + 100 ns    block 1 is dirtied again
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


@pytest.mark.parametrize(("number", "waits_longer", "last_number"), [(1, False, 2), (2, True, 3)])
def test_fsync_waits_only_for_the_transaction_of_its_inode(
    number: int, waits_longer: bool, last_number: int
) -> None:
    """A transaction that is being committed is waited for, and the running one is left alone.

    t        event
    0        block 1 is dirtied in transaction 1
    1        an fsync of an inode of transaction 1 begins the commit
    5 000    block 2 is dirtied in transaction 2
    6 000    an fsync of an inode of transaction *number*
    """
    log = Log()
    journal, ends_ns = log.journal, dict[int, int]()

    def dirty(block: int, start_ns: int) -> Any:
        def body(thread: Thread) -> Steps:
            yield start_ns
            yield from journal.start_handle(thread, 3)
            journal.stop_handle(3, (block,))

        return body

    def fsync(transaction: int, start_ns: int) -> Any:
        def body(thread: Thread) -> Steps:
            yield start_ns
            yield from journal.complete_transaction(thread, transaction)
            ends_ns[start_ns] = log.layer.env.now

        return body

    log.run(dirty(1, 0), fsync(1, 1), dirty(2, 5_000), fsync(number, 6_000), until_ns=S)
    assert ends_ns[6_000] >= ends_ns[1]
    assert (ends_ns[6_000] > ends_ns[1]) == waits_longer
    assert journal.number == last_number


def test_fsync_of_a_committed_transaction_returns_at_once() -> None:
    """Block 2 is dirty in transaction 2 when an fsync asks for transaction 1, which was committed."""
    log = Log()
    journal, waits = log.journal, list[bool]()

    def body(thread: Thread) -> Steps:
        journal.log((1,))
        waits.append((yield from journal.complete_transaction(thread, 1)))
        journal.log((2,))
        before_ns = log.layer.env.now
        waits.append((yield from journal.complete_transaction(thread, 1)))
        assert (log.layer.env.now, journal.number) == (before_ns, 2)

    log.run(body, until_ns=S)
    assert waits == [True, False]


def test_waiting_handle_begins_when_a_transaction_without_blocks_ends() -> None:
    """A transaction has 50 blocks: 22 for overhead and 20 for the first handle leave no room for 20 more.

    The first handle ends at 5 000 and has dirtied no block.
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
    """Half a transaction has 50 credits, which two reservations of 25 use exactly."""
    log = Log(300, convert_credits=convert_credits)
    reserved: list[int] = []

    def body(thread: Thread) -> Steps:
        for number in range(fit + 1):
            yield from log.journal.reserve(thread)
            reserved.append(number)

    log.run(body, until_ns=S)
    assert len(reserved) == fit


@pytest.mark.parametrize(("blocks", "full"), [(46, False), (47, True)])
def test_journal_is_full_if_a_mapping_finds_too_few_credits(blocks: int, full: bool) -> None:
    """A mapping needs 32 of 100 credits, and 22 are for overhead: 46 blocks leave enough, 47 do not."""
    log = Log(300, map_credits=32)
    log.journal.log(range(blocks))
    assert log.journal.is_full == full


def fill(log: Log, *counts: int) -> Any:
    """Return a body that commits transactions of *counts* blocks, all of which differ."""

    def body(thread: Thread) -> Steps:
        for number, count in enumerate(counts):
            yield from log.journal.start_handle(thread, 30)
            log.journal.stop_handle(30, range(100 * number, 100 * number + count))
            yield from log.journal.commit_log(thread)

    return body


def ask(log: Log, at_ns: int, began: list[int], plugged: bool = False) -> Any:
    """Return a body that begins a handle at *at_ns* and adds the time at which it has room to *began*.

    The body holds a plug if it is *plugged*.
    """

    def body(thread: Thread) -> Steps:
        yield at_ns
        if plugged:
            assert thread.start_plug()
        yield from log.journal.start_handle(thread, 30)
        began.append(log.layer.env.now)
        log.journal.stop_handle(30, ())

    return body


@pytest.mark.parametrize(("last", "in_place"), [(48, 0), (49, 48)])
def test_handle_begins_if_a_third_of_the_journal_is_free(last: int, in_place: int) -> None:
    """A transaction of 48 blocks takes 50, with a descriptor and the commit block.

    * Four transactions leave 100 of 300 blocks, and the next handle begins at once.
    * One block less is too little, and the oldest transaction is written in place.
    """
    log, began = Log(300), list[int]()
    requests = log.run(fill(log, 48, 48, 48, last), ask(log, MS, began), until_ns=S)
    assert sum(blocks for start, blocks, _ in requests if start < 1_000) == in_place
    assert (began[0] == MS) == (in_place == 0)


def test_room_is_free_only_after_the_blocks_are_in_place() -> None:
    """The transactions use 62, 72 and 72 of 300 blocks, which leaves 94.

    t              event
    1 ms           the first task writes the oldest 60 blocks in place, for 10 us
    1 ms + 1 ns    the second task finds no more room, and writes the next 70 blocks, 64 at a time
    """
    log, began = Log(300), list[int]()
    requests = log.run(fill(log, 60, 70, 70), ask(log, MS, began), ask(log, MS + 1, began), until_ns=S)
    in_place = [request for request in requests if request[0] < 1_000]
    assert in_place == [(0, 60, "W"), (100, 64, "W"), (164, 6, "W")]
    assert len(began) == 2
    assert min(began) >= MS + 10_000


def test_commit_takes_its_room_at_its_beginning() -> None:
    """A task that asks for room during a commit finds the blocks of the commit used.

    t                event
    1 ms             the commit of 70 blocks begins; 134 of 300 blocks were used
    1 ms + 100 ns    a task finds 206 blocks used, and writes the oldest transaction in place
    1 ms + 350 ns    the commit writes its first block
    """
    log, began = Log(300), list[int]()
    log.layer.env.call_at(MS, 0, lambda: log.journal.log(range(500, 570)))
    log.layer.env.call_at(MS, 0, log.journal.want)
    requests = log.run(fill(log, 60, 70), ask(log, MS + 100, began), until_ns=S)
    assert [request for request in requests if request[0] < 1_000] == [(0, 60, "W")]
    assert began[0] >= MS + 10_000


def test_blocks_in_commit_are_not_written_in_place() -> None:
    """The oldest transaction has 60 blocks, and the transaction in commit has the last 30 of them again.

    The new content of the 30 is in no log yet, so only the other blocks may be written in place.
    """
    log, began = Log(300), list[int]()
    log.layer.env.call_at(MS, 0, lambda: log.journal.log(range(30, 100)))
    log.layer.env.call_at(MS, 0, log.journal.want)
    requests = log.run(fill(log, 60, 70), ask(log, MS + 100, began), until_ns=S)
    assert [request for request in requests if request[0] < 1_000] == [(0, 30, "W")]


def test_task_that_makes_room_flushes_its_own_plug() -> None:
    """The task would otherwise wait for writes that are still in its plug."""
    log, began = Log(300), list[int]()
    log.run(fill(log, 60, 70, 70), ask(log, MS, began, plugged=True), until_ns=S)
    assert len(began) == 1


@pytest.mark.fullsize
def test_the_default_journal_has_room_for_half_a_million_files() -> None:
    """Empty files are made in one directory of a disk.

    The bottleneck is the processor with a journal of 1 GiB, and the journal if it has 64 MiB.
    """
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
