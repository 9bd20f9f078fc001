"""write(2) and the lock of an inode: in which mode, for which pages, how often, and how long it waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.harness import BlockLayer, loop_config, only
from tests.sim.test_sync import Running
from wbsim.experiments.config.experiment import parse
from wbsim.models.filesystems.files import PagedFile
from wbsim.models.filesystems.inode_locks import InodeLocks
from wbsim.models.machine import build
from wbsim.models.page_cache.pages import DELAYED, DIRTY, HELD, HOLE, MAPPED, RESERVED
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.sync import RwSemaphore, RwSemaphoreRules, WakeUps


class Stage:
    """A file of six pages, one in each state, whose lock another task holds from 100 to 400 ns."""

    def __init__(self, *, reads: bool, each_hole: bool, held_for: str = "writing") -> None:
        layer = BlockLayer(wake_ns=50)
        self.env = layer.env
        self.locks = InodeLocks(layer.parts, "ILOCK", reads=reads, each_hole=each_hole)
        self.file = PagedFile(0, True)
        self.file.make_room(6, 6)
        self.file.pages.states[:6] = [HOLE, HOLE | HELD, DELAYED, RESERVED, MAPPED, DIRTY]
        self.file.lock = self.locks.new()
        self.slept: list[int] = []
        self.writer: Any = SimpleNamespace(
            task=self.env.task("dd"), before_sleep=lambda: self.slept.append(self.env.now)
        )
        owner = self.env.task("flusher")
        self.env.start(owner, self._hold(owner, held_for))

    def _hold(self, owner: Any, held_for: str) -> Steps:
        yield 100
        lock = self.file.lock
        assert lock.try_write(owner) if held_for == "writing" else lock.try_read()
        yield 300
        if held_for == "writing":
            lock.up_write()
        else:
            lock.up_read(owner)

    def waits(self, at_ns: int, pages: list[int], calls: int) -> int | None:
        """Return how long write(2) of *pages* waits at *at_ns*; None: it does not wait."""
        waited: list[int | None] = []

        def write() -> Steps:
            yield at_ns
            steps = self.locks.write(self.writer, self.file, np.array(pages), calls)
            if steps is not None:
                yield from steps
            waited.append(None if steps is None else self.env.now - at_ns)

        self.env.start(self.writer.task, write())
        self.env.run()
        assert self.file.lock.free
        return waited[0]


@pytest.mark.parametrize(("at_ns", "wait_ns"), [(50, None), (150, 300), (399, 51), (401, None)])
@pytest.mark.parametrize("reads", [False, True])
def test_a_call_waits_while_the_flusher_has_the_lock(reads: bool, at_ns: int, wait_ns: int | None) -> None:
    """A call waits from its end to the release at 400 ns, and wakes up in 50 ns; it sleeps once."""
    stage = Stage(reads=reads, each_hole=False)
    assert stage.waits(at_ns, [0], 1) == wait_ns
    assert stage.slept == ([] if wait_ns is None else [at_ns])
    stat = stage.file.lock.read_stat if reads else stage.file.lock.stat
    assert stat.contentions == (wait_ns is not None)


@pytest.mark.source
@pytest.mark.parametrize("reads", [False, True])
def test_a_call_pays_for_the_task_that_it_wakes(reads: bool) -> None:
    """A worker sleeps behind the call, which has the lock at 450 ns and wakes the worker for 7 ns."""
    stage = Stage(reads=reads, each_hole=False)
    rules = RwSemaphoreRules(steals=True, spins=False, reader_spin_ns=0, hand_off_ns=0)
    stage.file.lock = lock = RwSemaphore(stage.env, "ILOCK", rules, WakeUps(50, 7), 0)
    worker = stage.env.task("worker")
    Running([worker, stage.writer.task])

    def work() -> Steps:
        yield from lock.down_write(worker)
        lock.up_write()

    stage.env.start(worker, work(), 200)
    assert stage.waits(150, [0], 1) == 307


@pytest.mark.parametrize(("reads", "wait_ns"), [(True, None), (False, 250)])
def test_readers_share_the_lock(reads: bool, wait_ns: int | None) -> None:
    """While a reader has the lock, write(2) waits only if it takes the lock for writing."""
    assert Stage(reads=reads, each_hole=False, held_for="reading").waits(200, [0], 1) == wait_ns


@pytest.mark.parametrize(
    ("pages", "calls", "once", "holes"),
    [
        ([0], 1, 1, 1), ([1], 1, 1, 1), ([2], 1, 1, 0), ([3], 1, 1, 0), ([4], 1, 1, 0), ([5], 1, 1, 0),
        ([6], 1, 1, 1), ([0, 1, 2, 3, 4, 5, 6, 7], 1, 1, 4), ([2, 3], 0, 0, 0), ([0, 1], 0, 0, 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("reads", [False, True])
def test_lock_is_taken_once_or_for_each_hole(
    reads: bool, pages: list[int], calls: int, once: int, holes: int
) -> None:
    """A page with a block, or a delayed one, has a buffer, for which no block is looked up."""
    for each_hole, takes in ((False, once), (True, holes)):
        stage = Stage(reads=reads, each_hole=each_hole)
        assert stage.waits(200, pages, calls) == (250 if takes else None)
        lock = stage.file.lock
        other = 0 if reads else 1  # the flusher
        assert (lock.read_stat if reads else lock.stat).acquisitions == takes + other


@pytest.mark.source
def test_no_calls_are_joined_while_a_task_waits() -> None:
    """At 11 ns the lock is free, because the task that waits for it wakes up only at 60 ns."""
    (case,) = parse(loop_config("dd if=/dev/zero of=/f bs=4k count=8", dirty_mib=8), "x.toml").cases
    machine = build(case.scenario, 1)
    machine.run()
    filesystem: Any = only(machine.mounts).filesystem
    file, pages = filesystem.layouts()[0], np.array([3, 4, 8])
    assert filesystem.writes_at_once(file.inode, pages) == 3
    assert filesystem.writes_at_once(file.inode, np.array([3, 9, 4])) == 1
    env, seen = Environment(), list[int]()
    rules = RwSemaphoreRules(steals=True, spins=False, reader_spin_ns=0, hand_off_ns=1)
    file.lock = lock = RwSemaphore(env, "ILOCK", rules, WakeUps(50), 0)
    waiter = env.task("flusher")
    assert lock.try_write(env.task("worker"))
    env.start(waiter, lock.down_write(waiter))
    env.call_at(10, 0, lock.up_write)
    env.call_at(11, 0, lambda: seen.append(filesystem.writes_at_once(file.inode, pages)))
    env.run()
    assert seen == [0]
