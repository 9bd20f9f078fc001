"""io_uring: which writes are done at once, which a worker does and when, and how many are in flight."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.harness import FIO, context, loop_config, only, process
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import build
from wbsim.models.syscalls.process import Process
from wbsim.models.syscalls.ring import Ring
from wbsim.models.throttling.io_less import PausedDirtier
from wbsim.models.vfs.spec import WriteCosts
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.sync import WakeUps

pytestmark = pytest.mark.source
TICK_NS = 1_000


class File(SimpleNamespace):
    """An inode with a dirty page."""

    __hash__ = object.__hash__


class Stage:
    """A ring of *depth* writes on two processors; a write takes 100 ns, a wake-up 20 ns, and its waker 5 ns.

    A throttle is due every *poll* pages, and holds a worker for 3 us.  ``log`` has the end of each write of
    a worker: the time, the worker, the file and the page.
    """

    def __init__(self, depth: int = 8, poll: int = 1_000, tries: bool = True, processors: int = 2) -> None:
        self.env = Environment()
        self.log: list[tuple[int, int, int, int]] = []
        self.wb = context(self.env)
        self.poll = poll
        self.locked = -1
        self.holds = True
        self.gap = False
        self.workers: list[Process] = []
        self.throttle: Any = SimpleNamespace(
            dirtier=PausedDirtier, poll_pages=lambda wb, dirtier: self.poll, balance=self._balance,
            passes=lambda wb, dirtier: not self.holds,
        )  # fmt: skip
        costs = WriteCosts(call_ns=100, page_ns=10, punt_ns=40, close_ns=30, mark_ns=7)
        self.costs = costs
        self.process = process(self.env, self.throttle, costs)
        self.process.task.on_cpu = True
        sb: Any = SimpleNamespace(filesystem=self, has_pages=lambda: None)
        self.files: list[Any] = [
            File(number=number, wb=self.wb, sb=sb, dirty_pages=1, i_sync=None) for number in range(6)
        ]
        self.ring = Ring(
            env=self.env, process=self.process, depth=depth, call_pages=1, tries=tries,
            new_worker=self._new_worker, processors=processors, wakes=WakeUps(20, 5), tick_ns=TICK_NS,
        )  # fmt: skip

    def _new_worker(self, number: int) -> Process:
        assert number == len(self.workers)
        self.workers.append(process(self.env, self.throttle, self.costs))
        self.workers[-1].task.on_cpu = True  # a scheduler has a processor for it
        return self.workers[-1]

    def _balance(self, thread: Any, wb: Any, dirtier: Any) -> Steps:
        dirtier.nr_dirtied = 0
        yield 3_000

    def write_lock(self, thread: Any, inode: Any, pages: Any, calls: int) -> None:
        """Take the lock, which is free."""

    def writes_at_once(self, inode: Any, pages: Any) -> int:
        """Return no page if the lock is taken, or if the write leaves a gap."""
        return 0 if inode.number == self.locked or self.gap else len(pages)

    def write(self, inode: Any, pages: Any, call_pages: int) -> tuple[int, int]:
        """Note a write of a worker."""
        self.log.append((self.env.now, len(self.workers), inode.number, int(pages[0])))
        return len(pages), len(pages)

    def takes(self, file: int) -> bool:
        """Return whether a write to a file is done at once."""
        return self.ring.takes(self.files[file], np.array([0]))

    def hand_over(self, file: int, page: int) -> int:
        """Hand a write over; return the time that this takes to wake a worker."""
        return self.ring.hand_over(self.files[file], np.array([page]), 100, self.env.now)

    def run(self, steps: Steps) -> None:
        """Run *steps* in the process."""
        self.env.start(self.process.task, steps)
        self.env.run()


def test_a_worker_gets_the_first_write_of_a_tick() -> None:
    """The worker's write begins at 0, so a write is done at once from its end at 100 on, until the tick."""
    of = Stage()

    def body() -> Steps:
        assert not of.takes(0)
        assert of.hand_over(0, 7) == 0
        yield 50
        assert not of.takes(0)  # the worker writes to the file
        yield 51
        assert of.takes(0)
        assert not of.takes(1)
        yield TICK_NS - 102
        assert of.takes(0)
        assert of.ring.tick_left_ns() == 1
        yield 1
        assert not of.takes(0)

    of.run(body())
    assert of.log == [(100, 1, 0, 7)]


def test_a_worker_gets_every_write_without_tries() -> None:
    """A filesystem that cannot fail instead of waiting."""
    of = Stage(tries=False)

    def body() -> Steps:
        of.hand_over(0, 0)
        yield 200
        assert not of.takes(0)

    of.run(body())


def test_writes_that_would_wait_are_not_done_at_once() -> None:
    """The lock is taken, the write leaves a gap, or the throttle would let the process sleep."""
    of = Stage(poll=0)

    def body() -> Steps:
        of.holds = False
        of.hand_over(0, 0)
        yield 200
        assert of.takes(0)
        of.locked = 0
        assert not of.takes(0)
        of.locked, of.gap = -1, True
        assert not of.takes(0)
        of.gap, of.holds = False, True
        assert not of.takes(0)
        of.poll = 1_000
        assert of.takes(0)

    of.run(body())


def test_a_worker_does_a_file_s_writes_in_a_row() -> None:
    """One worker does the two writes to file 0, and then the write to file 1, which came between."""
    of = Stage()

    def body() -> Steps:
        for file, page in ((0, 1), (1, 2), (0, 3)):
            of.hand_over(file, page)
        assert of.ring.in_flight == 3
        yield 1

    of.run(body())
    assert of.log == [(100, 1, 0, 1), (200, 1, 0, 3), (300, 1, 1, 2)]
    assert of.ring.in_flight == 0


def test_an_idle_worker_is_woken_once() -> None:
    """The worker is idle from 100 on.  At 150 it is woken, which takes the process 5 ns; it runs at 170."""
    of = Stage()

    def body() -> Steps:
        of.hand_over(0, 1)
        yield 150
        assert of.hand_over(0, 2) == 5
        assert of.hand_over(1, 3) == 0

    of.run(body())
    assert of.log == [(100, 1, 0, 1), (270, 1, 0, 2), (370, 1, 1, 3)]


def test_one_worker_wakes_up_at_a_time() -> None:
    """Two workers are idle; the one that was idle last wakes up, and does both writes."""
    of = Stage(poll=1)

    def body() -> Steps:
        of.hand_over(0, 1)
        of.hand_over(0, 2)
        of.hand_over(1, 3)
        yield 10_000
        of.poll = 1_000
        assert of.hand_over(0, 4) == 5
        assert of.hand_over(1, 5) == 0
        assert of.hand_over(2, 6) == 0
        yield 21
        assert of.hand_over(2, 7) == 5, "the first one runs now"

    of.run(body())
    assert len(of.workers) == 2
    assert [when for when, _, _, page in of.log if page in {4, 5}] == [10_120, 10_141]
    assert [worker.spent.write for worker in of.workers] == [500, 200], "the first one wakes up first"


@pytest.mark.parametrize(("processors", "workers"), [(1, 4), (2, 6)])
def test_another_worker_writes_while_one_is_held_back(processors: int, workers: int) -> None:
    """Each worker's second write is held back; a process has at most four workers for each processor."""
    of = Stage(poll=1, processors=processors)

    def body() -> Steps:
        for _ in range(2):
            for file in range(6):
                of.hand_over(file, 0)
        yield 1

    of.run(body())
    assert len(of.workers) == workers
    assert [file for _, _, file, _ in of.log[:2]] == [0, 1]
    assert of.log[1][0] == 200, "the second worker begins when the first one is held back"


def test_the_process_waits_while_the_ring_is_full() -> None:
    """Two writes are in flight until 100; the worker wakes the process in 20 ns, and takes 5 ns for it."""
    of = Stage(depth=2)

    def body() -> Steps:
        of.hand_over(0, 1)
        yield from of.ring.wait_for_place()
        assert of.env.now == 0, "there is a second place"
        of.hand_over(0, 2)
        yield from of.ring.wait_for_place()
        assert of.env.now == 120
        yield from of.ring.drain()
        assert of.env.now == 225
        assert of.ring.in_flight == 0

    of.run(body())
    assert [when for when, _, _, _ in of.log] == [100, 205]


def test_latencies_run_from_the_call_to_the_end() -> None:
    """The second write waits for the first one."""
    of = Stage()

    def body() -> Steps:
        of.hand_over(0, 1)
        yield 30
        of.hand_over(0, 2)

    of.run(body())
    latency = of.process.latencies.write
    assert (latency.min_ns, latency.max_ns, latency.total_ns) == (100, 170, 270)


def share_of_workers(kernel: str, filesystem: str, engine: str = "io_uring") -> float:
    """Return the workers' share of the time in write(2), if nothing is written back.

    The job hands a call over to a worker in no time.
    """
    command = f"{FIO} --rw=randwrite --nrfiles=3 --filesize=8m --name=a --directory=/a --iodepth=8"
    text = loop_config(
        f"{command} --ioengine={engine}", dirty_mib=200, kernel=kernel, filesystem=filesystem,
        more='sync_after = false\nmachine.processors.paths.write.punt_ns = "0 ns"',
    )  # fmt: skip
    machine = build(parse(text, "x.toml").cases[0].scenario, 1)
    machine.run()
    program: Any = only(machine.programs)
    assert sum(program.latencies.write.bins().values()) == 3 * 2_048
    family = program.family
    workers = sum(worker.spent.write for worker in family.io_workers)
    whole = workers + sum(child.spent.write for child in family.children)
    assert program.system_ns > whole, "the program's system time contains that of its workers"
    return float(workers / whole)


@pytest.mark.parametrize(
    ("kernel", "filesystem", "least", "most"),
    [("6.18", "loop-xfs", 0.01, 0.1), ("5.19", "loop-xfs", 0.95, 1), ("6.18", "loop-ext4", 0.95, 1)],
)
def test_xfs_tries_writes_from_6_0_on(kernel: str, filesystem: str, least: float, most: float) -> None:
    """On XFS a worker gets the first write of each file in a tick; otherwise it gets all writes."""
    assert least < share_of_workers(kernel, filesystem) <= most


def test_other_engines_have_no_workers() -> None:
    """libaio writes into the page cache in io_submit(2)."""
    assert share_of_workers("6.18", "loop-ext4", "libaio") == 0
