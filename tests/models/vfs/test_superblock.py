"""A mounted filesystem: its directories, its reads of metadata, and the wait for its writeback."""

from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import BlockLayer, context, inodes_of, no_lock, page_cache
from wbsim.models.bio import READ
from wbsim.models.interfaces import Thread
from wbsim.models.time_accounting import Spent
from wbsim.models.vfs.superblock import Flight, MountedSuperblock
from wbsim.sim.engine import Environment, Steps, Task, Wait


def mounted(env: Environment) -> MountedSuperblock:
    """Return a superblock whose filesystem takes 50 ns for a directory."""

    def mkdir(thread: Thread) -> Generator[Wait, None, Any]:
        made.append(env.now)
        yield 50
        return object()

    made: list[int] = []
    unplugs: list[int] = []
    bdi: Any = SimpleNamespace(queue=SimpleNamespace(unplug=lambda: unplugs.append(env.now), unplugs=unplugs))
    sb = MountedSuperblock(
        env, "mnt", bdi, 0, inodes_of(env, bdi, page_cache()), is_root="/".__eq__, new_i_rwsem=no_lock
    )
    names = SimpleNamespace(mkdir=mkdir, root=lambda: "the root")
    sb.filesystem = SimpleNamespace(names=names, made=made)  # type: ignore[assignment]
    return sb


def test_root_directory_exists_since_mkfs() -> None:
    """A task has the root at once, and the filesystem makes no directory for it."""
    env = Environment()
    sb = mounted(env)
    found: list[tuple[int, Any]] = []

    def body(task: Task) -> Steps:
        directory = yield from sb.directory(SimpleNamespace(task=task, spent=Spent()), "/")  # type: ignore[arg-type]
        found.append((env.now, directory))
        yield 0

    task = env.task("task")
    env.start(task, body(task))
    env.run()
    assert (found, sb.filesystem.made) == ([(0, "the root")], [])  # type: ignore[attr-defined]


def test_directory_is_made_once_and_other_tasks_wait_for_it() -> None:
    """A task that asks for a directory in the making waits until it is made.

    t     first                  second             third
    0     makes the directory
    10                           asks, and waits
    50    has the directory      has the directory
    90                                              asks, and has it at once
    """
    env = Environment()
    sb = mounted(env)
    found: list[tuple[int, Any]] = []

    def body(task: Task, start_ns: int) -> Steps:
        yield start_ns
        directory = yield from sb.directory(SimpleNamespace(task=task, spent=Spent()), "/a")  # type: ignore[arg-type]
        found.append((env.now, directory))

    for start_ns in (0, 10, 90):
        task = env.task("task")
        env.start(task, body(task, start_ns))
    env.run()
    assert [at for at, _ in found] == [50, 50, 90]
    assert len({id(directory) for _, directory in found}) == len(sb.filesystem.made) == 1  # type: ignore[attr-defined]


def test_metadata_read_leaves_the_plug_before_the_task_sleeps() -> None:
    """The task reads sector 16 of a filesystem that begins at block 100, which is sector 800."""
    block, read = BlockLayer(costs=(0, 0, 0)), list[int]()
    bdi: Any = SimpleNamespace(queue=block.queue)
    inodes = inodes_of(block.env, bdi, page_cache())
    sb = MountedSuperblock(block.env, "mnt", bdi, 100, inodes, is_root="/".__eq__, new_i_rwsem=no_lock)

    def body(thread: Thread) -> Steps:
        thread.start_plug()
        yield from sb.read(thread, 16, 8)
        read.append(block.env.now)
        yield from thread.finish_plug()

    block.run(body)
    (request,) = block.device.requests
    assert (read, request.start_sector, request.op) == ([10_000], 816, READ)


def test_wait_ignores_writeback_that_began_later() -> None:
    """A task waits for the pages that were under writeback when its wait began.

    t     event
    0     60 pages are under writeback, and the first task waits
    10    the second task waits
    20    10 more pages go under writeback
    30    25 of the 60 pages end
    70    35 of the 60 pages end, and both tasks wake up
    """
    env = Environment()
    sb, wb = mounted(env), context(env)
    wb.account_dirtied(100)
    first = sb.flight
    first.add(wb, 60)
    woken: list[int] = []

    def body(task: Task, start_ns: int) -> Steps:
        yield start_ns
        yield from sb.wait_for_writeback(SimpleNamespace(task=task, spent=Spent()))  # type: ignore[arg-type]
        woken.append(env.now)

    for start_ns in (0, 10):
        task = env.task("task")
        env.start(task, body(task, start_ns))
    env.call_at(20, 0, lambda: sb.flight.add(wb, 10))
    env.call_at(30, 0, lambda: first.end(wb, 25))
    env.call_at(70, 0, lambda: first.end(wb, 35))
    env.run()
    assert woken == [70, 70]
    assert sb.bdi.queue.unplugs == [0, 10], "a waiting task starts the I/O (unplug)"  # type: ignore[attr-defined]
    assert (wb.dirty, wb.dirty_and_writeback, wb.written_pages) == (30, 40, 60)


def test_pages_of_a_file_are_in_flight_with_others() -> None:
    """The wait for a file ends with its five pages, and the wait for all with the three of another file."""
    env = Environment()
    sb, wb = mounted(env), context(env)
    wb.account_dirtied(100)
    whole = sb.flight
    one, other = whole.of_file(), whole.of_file()
    one.add(wb, 5)
    other.add(wb, 3)
    assert (whole.pages, one.pages, other.pages, wb.dirty) == (8, 5, 3, 92)
    assert one.takes(whole)
    one.close()
    whole.close()
    assert not one.takes(whole)
    assert not other.takes(Flight(env))
    one.end(wb, 5)
    assert (one.landed.done, whole.landed.done, whole.pages, wb.written_pages) == (True, False, 3, 5)
    other.end(wb, 3)
    assert whole.landed.done
    assert not other.landed.done, "its file may have more pages"


@pytest.mark.parametrize(("largest", "folios"), [(1, [1, 1, 1, 1, 1, 1]), (512, [1, 2, 4, 256, 256, 512])])
def test_a_call_makes_the_largest_folios_that_fit(largest: int, folios: list[int]) -> None:
    """A folio has a power of two of pages; the calls have 1, 3, 4, 256, 300 and 2048 pages."""
    sb = mounted(Environment())
    assert sb.folio_pages(300) == 1, "by default a folio has one page"
    assert sb.folio_pages(0) == 1, "a write may end in the page of the previous one"
    sb.largest_folio = largest
    assert [sb.folio_pages(pages) for pages in (1, 3, 4, 256, 300, 2048)] == folios
