"""The wait of a burst of write(2) for an inode's lock."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.harness import BlockLayer
from wbsim.models.filesystems.files import PagedFile
from wbsim.models.filesystems.inode_locks import InodeLocks
from wbsim.sim.engine import Steps


def test_a_burst_waits_for_the_holds_that_it_meets() -> None:
    """The lock is held for 100 and 300 ns in 1 000 ns, so ten calls meet four holds.

    A call that meets a hold waits for (100^2 + 300^2) / 400 / 2 = 125 ns, and 50 ns for its wake-up.
    """
    layer = BlockLayer(wake_ns=50)
    env, locks, waited = layer.env, InodeLocks(layer.parts, "ILOCK"), list[int | None]()
    file = PagedFile(0, True)
    file.lock = locks.new()
    writer: Any = SimpleNamespace(task=env.task("fio"))
    owner = env.task("flusher")

    def hold() -> Steps:
        for hold_ns in (100, 300):
            assert file.lock.try_write(owner)
            yield hold_ns
            file.lock.up_write()
            yield 100

    def write() -> Steps:
        yield 1_000
        for _ in range(2):
            began_ns, steps = env.now, locks.write(writer, file, 10)
            if steps is not None:
                yield from steps
            waited.append(None if steps is None else env.now - began_ns)
            yield 10

    env.start(owner, hold())
    env.start(writer.task, write())
    env.run()
    assert waited == [4 * (125 + 50), None]
    stat = file.lock.stat
    assert (stat.acquisitions, stat.contentions, stat.wait_ns) == (2 + 10, 4, 700)


def test_a_burst_meets_no_more_holds_than_it_has_calls() -> None:
    """The lock was held all the time, for 200 ns in one hold: each of three calls waits 100 + 50 ns."""
    layer = BlockLayer(wake_ns=50)
    env, locks = layer.env, InodeLocks(layer.parts, "ILOCK")
    file = PagedFile(0, True)
    file.lock = locks.new()
    writer: Any = SimpleNamespace(task=env.task("fio"))

    def body() -> Steps:
        assert file.lock.try_write(writer.task)
        yield 200
        file.lock.up_write()
        steps = locks.write(writer, file, 3)
        assert steps is not None
        yield from steps

    env.start(writer.task, body())
    env.run()
    assert env.now == 200 + 3 * (100 + 50)
