"""The workqueue that completes files of one run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wbsim.models.filesystems.completions import Completions
from wbsim.models.scheduler.cpu import Processors
from wbsim.models.scheduler.runqueue import SchedulerRules
from wbsim.models.spent import Spent
from wbsim.sim.engine import Environment, Steps


def metadata(run_ended: Any, gives_way: bool = True) -> Any:
    """A filesystem's: a folio takes 100."""
    return SimpleNamespace(
        end_run=lambda worker, block, folios: 100 * folios, run_ended=run_ended, gives_way=gives_way
    )


def completions(env: Environment, worker: Any, unwritten: bool, metadata: Any) -> Completions:
    """The workqueue, with one worker."""
    costs: Any = SimpleNamespace()
    return Completions(env, [worker], unwritten, costs, metadata)


@pytest.mark.parametrize(
    ("unwritten", "clean"),
    [(True, [100, 200, 300, 600]), (False, [0, 50, 60, 500])],
    ids=["unwritten", "written"],
)
def test_files_are_completed_one_after_the_other(unwritten: bool, clean: list[int]) -> None:
    """On the device at 0, 50, 60 and 500; each takes 100. Unwritten extents are clean only then, others at
    once.
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
    """Three of them, at 0, 50 and 70: its pages are clean, and it is completed, once."""
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


@pytest.mark.parametrize(("gives_way", "other_began"), [(True, 100), (False, 600)])
def test_it_gives_way_between_files_or_not_before_the_end(gives_way: bool, other_began: int) -> None:
    """One processor: files of one, two and three folios of four pages, 100 each; another thread wakes at 50,
    and has the processor after the first file, whose worker had its slice, or after the last.
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
