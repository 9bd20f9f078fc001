"""The XFS log: pushed checkpoints, their records, and the buffers that are written back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.models.filesystems.watched_log import Log
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.filesystems.files import OPEN
from wbsim.models.filesystems.xfs.log import MetaBuffer
from wbsim.models.filesystems.xfs.metadata import XfsMetadata
from wbsim.models.interfaces import Thread
from wbsim.sim.engine import Steps
from wbsim.sim.units import KIB, MIB, S

NONE: Any = None
FLUSHER_COSTS: Any = SimpleNamespace(ioend_ns=0, reserve_ns=None)


def test_large_checkpoint_is_pushed_in_successive_records() -> None:
    """16 383 bytes stay in memory, and 16 384 bytes are pushed.

    Four records have 3 584 bytes each; the fifth has 2 048 bytes and its header, which are five sectors.
    """
    of = Log()
    of.commit(16_383, MetaBuffer(0, 8))
    assert of.run() == []
    of = Log()
    of.commit(16_383, MetaBuffer(0, 8))
    of.at(500, of.commit, 1, MetaBuffer(8, 8))
    assert of.run() == [(5_000 + 8 * i, 8, "FWF") for i in range(4)] + [(5_032, 5, "FWF")]
    assert of.log.written_bytes == 4 * 4_096 + 5 * 512
    assert of.log.checkpoint == 2


@pytest.mark.parametrize(
    ("kernel", "volatile", "iclogs", "commands"),
    [
        ("5.13", True, 1, ["F", "W", "F"] * 30),
        ("5.14", True, 32, ["F", *"W" * 29, "F", "W", "F"]),
        ("5.14", False, 32, ["FWF"] * 30),
    ],
)
def test_checkpoint_is_flushed_at_its_ends(
    kernel: str, volatile: bool, iclogs: int, commands: list[str]
) -> None:
    """From 5.14 on only the first and the last of 30 records bring a flush; the device has no FUA.

    The last waits until the others are written, because its first flush makes them safe.  A device without a
    volatile cache gets the records as they are.
    """
    of = Log(kernel, volatile, iclogs=iclogs)
    of.commit(30 * 3_584, MetaBuffer(0, 8))
    ops = [op for _, _, op in of.run()]
    assert sorted(ops) == sorted(commands)
    if kernel == "5.14" and volatile:
        assert (ops[:1], ops[-3:]) == (["F"], ["F", "W", "F"])
        times = of.layer.device.times
        assert times[-3] >= times[-4] + of.layer.device.latency_ns, "the last of the others is written"


def test_no_more_records_are_in_flight_than_there_are_buffers() -> None:
    """The third record waits until the first is on disk, and the fourth waits for the second."""
    of = Log()
    of.commit(4 * 3_584 + 2_048, MetaBuffer(0, 8))
    of.run()
    times, latency_ns = of.layer.device.times, of.layer.device.latency_ns
    assert times[1] < times[0] + latency_ns <= times[2]
    assert times[1] + latency_ns <= times[3]
    assert times[2] + latency_ns <= times[4]


def test_item_is_logged_once_in_each_checkpoint() -> None:
    """The item has the number of its checkpoint."""
    of = Log()
    buffer = MetaBuffer(0, 8)
    for _ in range(3):
        of.commit(100, buffer)
    assert of.log.items == [buffer]
    of.commit(16 * KIB, buffer)
    of.run()
    assert (of.log.items, buffer.checkpoint) == ([], 1)
    of.commit(100, buffer)
    assert (of.log.items, buffer.checkpoint) == ([buffer], 2)


@pytest.mark.parametrize("sectors", [40, 41])
def test_log_wraps_before_a_record_that_does_not_fit(sectors: int) -> None:
    """The fifth of six records may end with the log, and the sixth begins with the log."""
    of = Log(size=sectors * 512, checkpoint_bytes=4 * KIB, iclogs=1)
    for i in range(6):
        of.at(i * 10_000_000, of.commit, 3_584, MetaBuffer(8 * i, 8))
        of.at(i * 10_000_000 + 1, of.log.want_push)
    starts = [start for start, _, op in of.run() if op == "FWF"]
    assert starts == [5_000, 5_008, 5_016, 5_024, 5_032, 5_000]


def test_force_sleeps_until_the_checkpoint_is_on_disk() -> None:
    """A force does not wait for commits after the call, nor for an idle log."""
    of = Log()
    over: list[tuple[str, int]] = []

    def force(name: str, thread: Thread, start_ns: int) -> Steps:
        yield start_ns
        yield from of.log.force(thread.task)
        over.append((name, of.log.written_bytes))

    for name, start_ns in (("idle", 10), ("first", 1_000), ("second", 2_000)):
        thread = of.layer.parts.thread(name)
        of.env.start(thread.task, force(name, thread, start_ns))
    of.at(500, of.commit, 100, MetaBuffer(0, 8))
    of.at(1_500, of.commit, 7_000, MetaBuffer(8, 8))
    of.run()
    assert over == [("idle", 0), ("first", 1_024), ("second", 1_024 + 4_096 + 4_096)]


def test_sync_interval_forces_the_log_and_writes_its_items() -> None:
    """The second of two checkpoints is forced after a second.

    The buffers of the first are written in the order of their sectors, counted from the filesystem's start.
    """
    of = Log(sync_interval=S)
    of.commit(100, MetaBuffer(80, 8), MetaBuffer(16, 8))
    of.at(1_000, of.log.want_push)
    of.at(S // 2, of.commit, 100, MetaBuffer(0, 8), MetaBuffer(24, 8))
    requests = of.run(2 * S - 1)
    assert [request for request in requests if request[2] == "FWF"] == [(5_000, 2, "FWF"), (5_002, 2, "FWF")]
    assert [request for request in requests if request[2] == "W"] == [(116, 8, "W"), (180, 8, "W")]
    assert [item.start_sector for item in of.log.ail] == [0, 24]


def test_log_is_forced_at_the_end_of_each_interval() -> None:
    """An item is logged in the middle of each second."""
    of = Log(sync_interval=S)
    for second in range(4):
        of.at(second * S + S // 2, of.commit, 100, MetaBuffer(8 * second, 8))
    of.run(5 * S - 1)
    forced = [
        when // 1_000_000
        for when, request in zip(of.layer.device.times, of.layer.device.requests, strict=True)
        if request.op == "FWF"
    ]
    assert forced == [1_000, 2_000, 3_000, 4_000]


def test_all_waiting_writers_continue_when_the_tail_has_moved() -> None:
    """A small checkpoint holds the tail, and a large one behind it fills the log.

    t         event
    0         the small checkpoint is committed; xfsaild pauses until 100 ms
    10 ms     the large checkpoint is committed, and three writers wait for space
    100 ms    xfsaild writes the oldest items, and the writers continue together
    """
    of = Log(checkpoint_bytes=512 * KIB, ail_pause=100_000_000)
    of.at(0, of.log.want_ail, 0)
    came: list[tuple[int, str]] = []
    over: list[tuple[int, str]] = []

    def wait(name: str, thread: Thread) -> Steps:
        while not of.log.full:
            yield 1_000
        came.append((of.env.now, name))
        yield from of.log.wait_for_space(thread)
        over.append((of.env.now, name))

    of.commit(1 * KIB, MetaBuffer(0, 8))
    of.at(1, of.log.want_push)
    of.at(10_000_000, of.commit, 1_023 * KIB, MetaBuffer(80, 8))
    threads = {name: of.layer.parts.thread(name) for name in "abc"}
    for number, name in enumerate("cab"):
        of.env.start(threads[name].task, wait(name, threads[name]), 10_000_100 + number)
    requests = of.run()
    times = [when for when, request in zip(of.layer.device.times, requests, strict=True) if request[2] == "W"]
    assert len(came) == 3
    assert [name for _, name in over] == ["a", "b", "c"]
    assert {when for when, _ in over} == {over[0][0]}
    assert max(when for when, _ in came) < 100_000_000 < times[0] <= over[0][0] < 101_000_000
    assert not of.log.full


def test_buffers_are_written_in_the_order_of_their_sectors() -> None:
    """Five buffers are logged in another order than that of their sectors; the filesystem begins at 100.

    The plug keeps the order in which xfsaild submits (xfs_buf_delwri_submit sorts by block number).
    """
    of = Log()
    of.commit(100, *(MetaBuffer(sector, 8) for sector in (400, 80, 800, 16, 240)))
    of.at(1, of.log.want_push)
    of.at(10_000_000, of.log.want_ail, MIB)
    assert [start for start, _, op in of.run() if op == "W"] == [116, 180, 340, 500, 900]


def test_records_are_synchronous_and_buffers_are_not() -> None:
    """A record of 1 KiB has one segment, and a buffer of 128 KiB has a segment for each of its 32 pages."""
    of = Log()
    of.commit(100, MetaBuffer(0, 256))
    of.at(1, of.log.want_push)
    of.at(10_000_000, of.log.want_ail, MIB)
    of.run()
    assert [(r.op, r.sync, r.segments) for r in of.layer.device.requests] == [
        ("FWF", True, 1),
        ("W", False, 32),
    ]


@pytest.mark.parametrize(("used_kib", "full"), [(1_023, False), (1_024, True)])
def test_a_log_is_full_when_its_size_is_used(used_kib: int, full: bool) -> None:
    """Bytes of the growing checkpoint and bytes written since the oldest item are used."""
    of = Log(checkpoint_bytes=512 * KIB)
    of.commit(used_kib * KIB, MetaBuffer(0, 8))
    assert of.log.full == full


@pytest.mark.parametrize(("checkpoints", "in_place"), [(7, []), (8, [100, 200, 300, 400])])
def test_half_of_a_log_that_is_nearly_full_is_pushed(checkpoints: int, in_place: list[int]) -> None:
    """A log of 64 KiB gets checkpoints of two records of 4 KiB, and each has its own buffer.

    The tail is the end of the first checkpoint, at 8 KiB (xlog_grant_push_threshold).

    head      used      free
    56 KiB    48 KiB    16 KiB, a quarter: nothing is pushed
    64 KiB    56 KiB    8 KiB: the items up to 64 - 32 KiB are written in place, those of four checkpoints
    """
    of = Log(size=64 * KIB, checkpoint_bytes=8 * KIB)
    for number in range(checkpoints):
        of.at(10_000_000 * number, of.commit, 2 * 3_584, MetaBuffer(100 * number, 8))
        of.at(10_000_000 * number + 1, of.log.want_push)
    assert [start for start, _, op in of.run() if op == "W"] == in_place


def test_relogged_item_moves_to_the_end_of_the_ail() -> None:
    """The oldest of two items is relogged, and the tail is then that of the second item."""
    of = Log()
    first, second = MetaBuffer(0, 8), MetaBuffer(8, 8)
    for when_ns, buffer in ((0, first), (10_000_000, second), (20_000_000, first)):
        of.at(when_ns, of.commit, 16 * KIB, buffer)
    of.run()
    assert list(of.log.ail) == [second, first]
    each = 4 * 4_096 + 5 * 512
    assert list(of.log.ail.values()) == [2 * each, 3 * each]
    assert of.log.used_bytes() == each


def two_pushed(of: Log) -> None:
    """Commit a buffer at sector 0, and at 10 ms one at sector 800, each in a separate checkpoint."""
    for when_ns, sector in ((0, 0), (10_000_000, 800)):
        of.at(when_ns, of.commit, 100, MetaBuffer(sector, 8))
        of.at(when_ns + 1, of.log.want_push)


def test_smaller_request_for_space_does_not_replace_a_larger_one() -> None:
    """The first request is to write all that was logged, and the second is to write nothing more."""
    of = Log()
    two_pushed(of)
    of.at(20_000_000, of.log.want_ail, 20 * KIB)
    of.at(20_000_000, of.log.want_ail, 0)
    assert [request for request in of.run() if request[2] == "W"] == [(100, 8, "W"), (900, 8, "W")]


def test_growing_checkpoint_counts_once_while_another_is_written() -> None:
    """A log of 64 KiB does not push a growing checkpoint of 25 600 bytes yet, next to one of 28 KiB."""
    of = Log(size=64 * KIB, checkpoint_bytes=32 * KIB)
    for when_ns, kib, sector in (
        (0, 1, 0),
        (10_000_000, 28, 80),
        (10_001_500, 10, 160),
        (20_000_000, 15, 160),
    ):
        of.at(when_ns, of.commit, kib * KIB, MetaBuffer(sector, 8))
    for when_ns in (1, 10_000_001):
        of.at(when_ns, of.log.want_push)
    of.run()
    assert (of.log.checkpoint, of.log.item_bytes) == (3, 25 * KIB)


def test_commit_during_a_push_waits_for_another_push() -> None:
    """The first push writes only the items that were committed before."""
    of = Log()
    of.at(0, of.commit, 100, MetaBuffer(0, 8))
    of.at(1, of.log.want_push)
    of.at(1_500, of.commit, 100, MetaBuffer(8, 8))
    assert of.run() == [(5_000, 2, "FWF")]


@pytest.mark.parametrize("push_ns", [None, 4_000])
def test_pass_begins_with_a_log_force_if_memory_is_full(push_ns: int | None) -> None:
    """An item is logged, and its record is in flight already or not pushed yet, when xfsaild is woken.

    The same pass waits for the record, and writes the item in place; the next pass would come after 100 ms.
    """
    of = Log(ail_pause=100_000_000)
    of.at(0, of.commit, 100, MetaBuffer(0, 8))
    if push_ns is not None:
        of.at(push_ns, of.log.want_push)
    of.at(8_000, setattr, of.cache, "reclaiming", True)
    of.at(8_000, of.log.want_ail, 0)
    requests = of.run(50_000_000)
    assert [request[2] for request in requests] == ["FWF", "W"]
    assert of.layer.device.times[0] + of.layer.device.latency_ns <= of.layer.device.times[1]


def test_checkpoint_logs_an_inode_once_for_several_extents() -> None:
    """Each extent is logged, and the inode with the first extent of a checkpoint.

    * The first extent logs the inode.
    * Two more extents do not log the inode again.
    * An extent after the push logs the inode again.
    """
    of, spec = Log(), FILESYSTEMS["p13-xfs"]
    costs: Any = SimpleNamespace(end_folio_ns=0)
    metadata = XfsMetadata(NONE, of.log, spec, FLUSHER_COSTS, costs, [], False)
    inode: Any = SimpleNamespace(checkpoint=0, cluster=MetaBuffer(0, 8), file=OPEN)
    logged = []
    for extents in (1, 2):
        for _ in range(extents):
            metadata.log_extent(inode)
        logged.append(of.log.item_bytes)
    of.at(0, of.log.want_push)
    of.run()
    metadata.log_extent(inode)
    logged.append(of.log.item_bytes)
    assert of.log.items == [inode.cluster]
    each, whole = spec.extent_log_bytes, spec.inode_log_bytes
    assert logged == [each + whole, 3 * each + whole, each + whole]


def test_end_of_a_run_logs_its_cluster_once_a_checkpoint() -> None:
    """The first run of a checkpoint logs the inode and an extent, the second run an extent alone."""
    of = Log()
    spec: Any = SimpleNamespace(
        extent_items=3, extent_log_bytes=100, inode_log_bytes=300, size=4_096, agcount=1, rmapbt=False
    )
    costs: Any = SimpleNamespace()
    metadata = XfsMetadata(NONE, of.log, spec, FLUSHER_COSTS, costs, [], False)
    assert metadata.gives_way, "xfs_end_io calls cond_resched between two ioends"
    inode: Any = SimpleNamespace(checkpoint=0, cluster=MetaBuffer(0, 8), file=OPEN)
    logged = []
    for _ in range(2):
        metadata.run_ended(inode)
        logged.append(of.log.item_bytes)
    assert logged == [400, 500]
    assert of.log.items == [inode.cluster]


@pytest.mark.parametrize(
    ("size", "begins_ns", "log_ns"),
    [
        (1, [0], 0), (4, [1], 1), (1_792, [500], 500), (3_583, [999], 999), (3_584, [1_000], 1_000),
        (3_585, [1_000, 2_110], 1_000), (7_168, [1_000, 3_110], 2_000), (8_960, [1_000, 3_110], 2_500),
    ],
)  # fmt: skip
def test_record_takes_its_share_of_a_full_one(size: int, begins_ns: list[int], log_ns: int) -> None:
    """A full record has 3 584 bytes and takes 1 000 ns; a part of a nanosecond does not count.

    The block layer takes 1 110 ns for a record, before the work for the next one begins.
    """
    log = Log()
    log.at(0, log.commit, size, MetaBuffer(0, 8))
    log.at(0, log.log.want_push)
    log.run(100_000_000)
    records = [request for request in log.layer.device.requests if "F" in request.op]
    assert [request.started_ns for request in records][:2] == begins_ns
    assert log.log._cil_worker.spent.log == log_ns
