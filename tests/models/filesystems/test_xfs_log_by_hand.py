"""The XFS log by hand: what is pushed when, in which records, and what is written back from it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.models.filesystems.watched_log import Log
from wbsim.models.catalogue.filesystems import P13_XFS
from wbsim.models.filesystems.xfs.log import MetaBuffer
from wbsim.models.filesystems.xfs.metadata import XfsMetadata
from wbsim.models.interfaces import Thread
from wbsim.sim.engine import Steps
from wbsim.sim.units import KIB, S


def test_a_checkpoint_is_pushed_when_it_is_large_enough_in_records_behind_each_other() -> None:
    """16 383 bytes stay in memory; one more makes 16 384, of which each record holds 3 584: four whole ones,
    and 2 048 bytes with their header, five sectors.
    """
    of = Log()
    of.commit(16_383, MetaBuffer(0, 8))
    assert of.run() == []
    of = Log()
    of.commit(16_383, MetaBuffer(0, 8))
    of.at(500, of.commit, 1, MetaBuffer(8, 8))
    assert of.run() == [(5_000 + 8 * i, 8, "FW") for i in range(4)] + [(5_032, 5, "FW")]
    assert of.log.written_bytes == 4 * 4_096 + 5 * 512
    assert of.log.checkpoint == 2


def test_no_more_records_are_in_flight_than_there_are_buffers() -> None:
    """The third waits until the first is on disk, the fourth for the second."""
    of = Log()
    of.commit(4 * 3_584 + 2_048, MetaBuffer(0, 8))
    of.run()
    times, latency_ns = of.layer.device.times, of.layer.device.latency_ns
    assert times[1] < times[0] + latency_ns <= times[2]
    assert times[1] + latency_ns <= times[3]
    assert times[2] + latency_ns <= times[4]


def test_an_item_is_logged_once_a_checkpoint_and_anew_in_the_next() -> None:
    """By its number."""
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
def test_the_log_begins_anew_where_a_record_would_end_behind_it(sectors: int) -> None:
    """Six times 3 584 bytes: the fifth record may end where the log does, the sixth begins at 0 again."""
    of = Log(size=sectors * 512, checkpoint_bytes=4 * KIB, iclogs=1)
    for i in range(6):
        of.at(i * 10_000_000, of.commit, 3_584, MetaBuffer(8 * i, 8))
        of.at(i * 10_000_000 + 1, of.log.want_push)
    starts = [start for start, _, op in of.run() if op == "FW"]
    assert starts == [5_000, 5_008, 5_016, 5_024, 5_032, 5_000]


def test_who_forces_sleeps_until_its_checkpoint_is_on_disk() -> None:
    """What came after the call is not waited for; an idle log not at all."""
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


def test_the_sync_interval_forces_the_log_and_writes_what_it_holds_in_order_of_place() -> None:
    """Two checkpoints: the buffers go out together, by sector, counted from where the filesystem begins; the
    neighbours as one request.
    """
    of = Log(sync_interval=S)
    of.commit(100, MetaBuffer(80, 8), MetaBuffer(16, 8))
    of.at(1_000, of.log.want_push)
    of.at(S // 2, of.commit, 100, MetaBuffer(0, 8), MetaBuffer(24, 8))
    requests = of.run(2 * S - 1)
    assert [request for request in requests if request[2] == "FW"] == [(5_000, 2, "FW"), (5_002, 2, "FW")]
    assert [request for request in requests if request[2] == "W"] == [(116, 8, "W"), (180, 8, "W")]
    assert [item.start_sector for item in of.log.ail] == [0, 24]


def test_the_sync_interval_comes_again_and_again() -> None:
    """Something is logged in the middle of each second: it is forced at the end of it."""
    of = Log(sync_interval=S)
    for second in range(4):
        of.at(second * S + S // 2, of.commit, 100, MetaBuffer(8 * second, 8))
    of.run(5 * S - 1)
    forced = [
        when // 1_000_000
        for when, request in zip(of.layer.device.times, of.layer.device.requests, strict=True)
        if request.op == "FW"
    ]
    assert forced == [1_000, 2_000, 3_000, 4_000]


def test_all_who_wait_for_space_go_on_when_the_tail_has_moved() -> None:
    """A small checkpoint holds the tail, and a large one behind it fills the log, while xfsaild pauses until
    100 ms. Three writers wait for it, and go on together once the oldest items are written.
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


@pytest.mark.parametrize(("used_kib", "full"), [(1_023, False), (1_024, True)])
def test_a_log_is_full_when_its_size_is_used(used_kib: int, full: bool) -> None:
    """By what grows and by what was written since the oldest item."""
    of = Log(checkpoint_bytes=512 * KIB)
    of.commit(used_kib * KIB, MetaBuffer(0, 8))
    assert of.log.full == full


def test_relogged_items_move_to_the_end_so_that_the_tail_moves() -> None:
    """The oldest item is relogged: the tail is then the second one's."""
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
    """One buffer at sector 0, and at 10 ms one at 800, each in a checkpoint of its own."""
    for when_ns, sector in ((0, 0), (10_000_000, 800)):
        of.at(when_ns, of.commit, 100, MetaBuffer(sector, 8))
        of.at(when_ns + 1, of.log.want_push)


def test_a_smaller_wish_for_space_does_not_replace_a_larger_one() -> None:
    """All that was logged is to be written, and then nothing more is asked for."""
    of = Log()
    two_pushed(of)
    of.at(20_000_000, of.log.want_ail, 20 * KIB)
    of.at(20_000_000, of.log.want_ail, 0)
    assert [request for request in of.run() if request[2] == "W"] == [(100, 8, "W"), (900, 8, "W")]


def test_what_grows_counts_once_while_another_checkpoint_is_written() -> None:
    """A log of 64 KiB, and 25 600 bytes beside a checkpoint of 28 KiB: it is not pushed yet."""
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


def test_a_push_is_of_what_was_there() -> None:
    """What comes while it is written waits for another one."""
    of = Log()
    of.at(0, of.commit, 100, MetaBuffer(0, 8))
    of.at(1, of.log.want_push)
    of.at(1_500, of.commit, 100, MetaBuffer(8, 8))
    assert of.run() == [(5_000, 2, "FW")]


@pytest.mark.parametrize("push_ns", [None, 4_000])
def test_while_memory_is_full_a_pass_begins_with_a_log_force(push_ns: int | None) -> None:
    """Something is logged, and its record is in flight already or not even pushed, when memory is full and
    xfsaild is woken: the same pass waits for it, and writes it in place, long before the next in 100 ms.
    """
    of = Log(ail_pause=100_000_000)
    of.at(0, of.commit, 100, MetaBuffer(0, 8))
    if push_ns is not None:
        of.at(push_ns, of.log.want_push)
    of.at(8_000, setattr, of.cache, "reclaiming", True)
    of.at(8_000, of.log.want_ail, 0)
    requests = of.run(50_000_000)
    assert [request[2] for request in requests] == ["FW", "W"]
    assert of.layer.device.times[0] + of.layer.device.latency_ns <= of.layer.device.times[1]


def test_a_checkpoint_has_an_inode_once_whatever_is_mapped_of_it() -> None:
    """Each extent, and the inode with the first of a checkpoint: of one, of two more, and of one after the
    push, in which it counts again.
    """
    of, spec = Log(), P13_XFS
    costs: Any = SimpleNamespace(end_folio_ns=0)
    metadata = XfsMetadata(of.log, spec, SimpleNamespace(ioend_ns=0), costs, [], False)  # type: ignore[arg-type]
    inode: Any = SimpleNamespace(checkpoint=0, cluster=MetaBuffer(0, 8))
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
    metadata = XfsMetadata(of.log, spec, SimpleNamespace(ioend_ns=0), costs, [], False)  # type: ignore[arg-type]
    inode: Any = SimpleNamespace(checkpoint=0, cluster=MetaBuffer(0, 8))
    logged = []
    for _ in range(2):
        metadata.run_ended(inode)
        logged.append(of.log.item_bytes)
    assert logged == [400, 500]
    assert of.log.items == [inode.cluster]
