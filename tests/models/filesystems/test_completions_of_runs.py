"""The workqueue that completes writes: files of one run, and ioends of other files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wbsim.models.filesystems.completions import Completions
from wbsim.models.filesystems.ioends import IoEnd
from wbsim.models.scheduler.cpu import Processors
from wbsim.models.scheduler.runqueue import SchedulerRules
from wbsim.models.time_accounting import Spent
from wbsim.models.vfs.superblock import Flight
from wbsim.sim.engine import Environment, Steps


def metadata(run_ended: Any, gives_way: bool = True) -> Any:
    """Return the metadata of a filesystem that completes a folio in 100 ns."""
    return SimpleNamespace(
        end_run=lambda worker, block, folios: 100 * folios, run_ended=run_ended, gives_way=gives_way
    )


def completions(env: Environment, worker: Any, unwritten: bool, metadata: Any) -> Completions:
    """Return a workqueue with one worker."""
    costs: Any = SimpleNamespace()
    queue = SimpleNamespace(ends_on=5)
    return Completions(
        env, [worker], bound=False, queue=queue, unwritten=unwritten, costs=costs, metadata=metadata
    )


def test_bound_worker_completes_requests_that_ended_on_its_processor() -> None:
    """Each file takes 100 ns, and another task has processor 1 until 50.

    t      processor 0                    processor 1                  processor 2
    1                                     a ends, and waits
    11     b ends
    21     c ends, and waits
    31                                                                 d ends (on any processor)
    41                                    e ends, and waits
    50                                    the other task ends
    111    b is complete
    131                                                                d is complete
    150                                   a is complete
    211    c is complete
    250                                   e is complete
    """
    env = Environment()
    of = Processors(env, 3, SchedulerRules(50), lambda: 0.0)
    workers: list[Any] = [
        SimpleNamespace(task=of.adopt(env.task(f"kworker/{number}")), spent=Spent()) for number in range(3)
    ]
    done: list[tuple[int, str, int]] = []
    costs: Any = SimpleNamespace()
    queue = SimpleNamespace(ends_on=-1)

    def ended(inode: Any) -> None:
        (cpu,) = (worker.task.cpu for worker in workers if worker.task.since_ns == env.now - 100 * inode.nth)
        done.append((env.now, inode.name, cpu))

    ioends = Completions(
        env, workers, bound=True, queue=queue, unwritten=True, costs=costs, metadata=metadata(ended)
    )
    flight: Any = SimpleNamespace(end=lambda wb, pages: None)

    def end(name: str, cpu: int, nth: int) -> None:
        queue.ends_on = cpu
        ioends.end_io((SimpleNamespace(name=name, wb="wb", folio_pages=4, nth=nth), flight, 4, 0))

    for at, (name, cpu, nth) in enumerate((("a", 1, 1), ("b", 0, 1), ("c", 0, 2), ("d", -1, 1), ("e", 1, 2))):
        env.call_at(10 * at + 1, 9, lambda name=name, cpu=cpu, nth=nth: end(name, cpu, nth))  # type: ignore[misc]
    other = of.adopt(env.task("other"))
    other.bound = 1
    env.start(other, (wait for wait in (50,)))
    env.run()
    assert done == [(111, "b", 0), (131, "d", 2), (150, "a", 1), (211, "c", 0), (250, "e", 1)]


@pytest.mark.parametrize(
    ("unwritten", "clean"),
    [(True, [100, 200, 300, 600]), (False, [0, 50, 60, 500])],
    ids=["unwritten", "written"],
)
def test_files_are_completed_one_after_the_other(unwritten: bool, clean: list[int]) -> None:
    """The writes of four files end at 0, 50, 60 and 500, and each file takes the worker 100 ns.

    The pages of unwritten extents are clean after the completion, and other pages after the I/O.
    """
    env = Environment()
    done: list[tuple[int, str]] = []
    ended: list[tuple[int, str, str, int]] = []
    flight: Any = SimpleNamespace(end=lambda wb, pages: ended.append((env.now, name_of[wb], wb, pages)))
    name_of = {f"wb of {name}": name for name in "abcd"}
    worker: Any = SimpleNamespace(task=env.task("kworker"), spent=Spent())
    ioends = completions(env, worker, unwritten, metadata(lambda inode: done.append((env.now, inode.name))))
    for pages, (when_ns, name) in enumerate(((0, "a"), (50, "b"), (60, "c"), (500, "d")), 1):
        inode: Any = SimpleNamespace(name=name, wb=f"wb of {name}", folio_pages=4)
        env.call_at(when_ns, 9, lambda inode=inode, pages=pages: ioends.end_io((inode, flight, pages, 0)))  # type: ignore[misc]
    env.run()
    assert done == [(100, "a"), (200, "b"), (300, "c"), (600, "d")]
    assert [(when_ns, name, pages) for when_ns, name, _, pages in ended] == [
        (when_ns, name, pages) for pages, (when_ns, name) in enumerate(zip(clean, "abcd", strict=True), 1)
    ]


def test_an_ioend_of_several_bios_ends_with_the_last() -> None:
    """Three bios end at 0, 50 and 70; then the pages of their ioend are clean, and are completed once."""
    env = Environment()
    done: list[int] = []
    ended: list[tuple[int, int]] = []
    flight: Any = SimpleNamespace(end=lambda wb, pages: ended.append((env.now, pages)))
    worker: Any = SimpleNamespace(task=env.task("kworker"), spent=Spent())
    ioends = completions(env, worker, False, metadata(lambda inode: done.append(env.now)))
    end_io, inode = ioends.end_io_of(3), SimpleNamespace(wb="wb", folio_pages=32)
    for when_ns in (0, 50, 70):
        env.call_at(when_ns, 9, lambda: end_io((inode, flight, 20, 0)))
    env.run()
    assert (ended, done) == ([(70, 20)], [170])


def test_the_folios_of_an_ioend_end_after_its_conversion() -> None:
    """The conversion takes 100 ns, and each of two folios takes 7 ns, so the five pages are clean at 114."""
    env = Environment()
    clean: list[tuple[int, int]] = []
    worker: Any = SimpleNamespace(task=env.task("kworker"), spent=Spent())
    costs: Any = SimpleNamespace(end_folio_ns=7)
    of: Any = SimpleNamespace(convert=lambda *_: iter([100]), gives_way=True)
    work = Completions(
        env, [worker], bound=False, queue=SimpleNamespace(ends_on=0), unwritten=True, costs=costs, metadata=of
    )
    inode: Any = SimpleNamespace(wb=SimpleNamespace(), folio_pages=4)
    inode.wb.account_clean = lambda pages: clean.append((env.now, pages))
    inode.wb.account_writeback = lambda pages: None
    ioends, flight = work.ioends_of(inode), Flight(env)
    assert ioends is not None
    ioend = IoEnd(0, 0, flight)
    flight.add(inode.wb, 5)
    ioend.pages, ioend.bios, ioend.is_open = 5, 1, False
    env.call_at(0, 9, lambda: ioends.end_io(ioend))
    env.run()
    assert clean == [(114, 5)]
    assert worker.spent.complete == 14


@pytest.mark.parametrize(("gives_way", "other_began"), [(True, 100), (False, 600)])
def test_worker_gives_way_between_files_or_at_the_end(gives_way: bool, other_began: int) -> None:
    """Files of one, two and three folios take 100 ns a folio on the only processor.

    Another thread wakes at 50.  The thread gets the processor after the first file, because the slice of the
    worker is over, or after the last file.
    """
    env = Environment()
    of = Processors(env, 1, SchedulerRules(50), lambda: 0.0)
    worker: Any = SimpleNamespace(task=of.adopt(env.task("kworker")), spent=Spent())
    began: list[int] = []
    done: list[int] = []

    def other() -> Steps:
        began.append(env.now)
        yield 10

    ioends = completions(env, worker, True, metadata(lambda inode: done.append(env.now), gives_way))
    flight: Any = SimpleNamespace(end=lambda wb, pages: None)
    inode: Any = SimpleNamespace(wb="wb", folio_pages=4)

    def ended() -> None:
        for pages in (1, 5, 12):
            ioends.end_io((inode, flight, pages, 0))

    env.call_at(0, 9, ended)
    task = of.adopt(env.task("other"))
    env.start(task, other(), 50)
    env.run()
    ends = [100, 300, 600] if not gives_way else [100, 310, 610]
    assert (began, done) == ([other_began], ends)
