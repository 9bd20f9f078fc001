"""sync(2): whom it asks, what it waits for, and in which order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from models.spent import Spent
from models.vfs.sync import sync
from sim.engine import Environment, Steps
from sim.sync import Completion


class Wb(list[int]):
    """A context with so many listed inodes."""

    def __init__(self, name: str, inodes: int) -> None:
        super().__init__([0] * inodes)
        self.name = name

    __hash__ = object.__hash__  # type: ignore[assignment]


def test_all_are_started_then_each_is_waited_for_and_then_forced() -> None:
    """Two filesystems and three dirty pages; the second context of the first is clean, and is not started."""
    env, log = Environment(), []

    class Flushers:
        def queue(self, wb: Wb, work: Any) -> Completion:
            done = Completion(env, "it")
            asks = work.nr_pages if work.reason == "start" else work.sb.name
            log.append((env.now, work.reason, wb.name, asks))
            env.call_at(env.now + 10, 0, done.complete)
            return done

    def superblock(name: str, *wbs: Wb) -> Any:
        def wait_for_writeback(thread: Any) -> Steps:
            yield 5
            log.append((env.now, "waited", name))

        def sync_fs(thread: Any) -> Steps:
            yield 1
            log.append((env.now, "sync_fs", name))

        return SimpleNamespace(
            name=name, bdi=SimpleNamespace(wbs=wbs), wait_for_writeback=wait_for_writeback,
            filesystem=SimpleNamespace(sync_fs=sync_fs),
        )  # fmt: skip

    class Bdi(SimpleNamespace):
        __hash__ = object.__hash__  # type: ignore[assignment]

    superblocks = [superblock("one", Wb("a", 1), Wb("b", 0)), superblock("two", Wb("c", 1))]
    for sb in superblocks:
        sb.bdi = Bdi(wbs=sb.bdi.wbs)
    task = env.task("sync")
    thread: Any = SimpleNamespace(task=task, spent=Spent())
    flushers: Any = Flushers()
    env.start(task, sync(thread, superblocks, flushers, SimpleNamespace(dirty=3)))  # type: ignore[arg-type]
    env.run()
    assert log == [
        (0, "start", "a", 3), (0, "start", "c", 3),
        (0, "sync", "a", "one"), (10, "sync", "b", "one"), (25, "waited", "one"),
        (25, "sync", "c", "two"), (40, "waited", "two"),
        (41, "sync_fs", "one"), (42, "sync_fs", "two"),
    ]  # fmt: skip
