"""The allocation group that an extent is taken from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wbsim.models.filesystems.xfs.free_space import FreeSpace
from wbsim.models.filesystems.xfs.groups import Group, lock_group
from wbsim.models.interfaces import NoSpace
from wbsim.models.time_accounting import Spent
from wbsim.sim.engine import Environment, Steps, Task
from wbsim.sim.sync import Semaphore, WakeUps


class Groups:
    """Groups whose longest free extents have *longest* blocks."""

    def __init__(self, *longest: int, wake_ns: int = 0) -> None:
        self.env = env = Environment()
        self.groups = [
            Group(
                number,
                1_000 * number,
                FreeSpace(0, free),
                Semaphore(env, "AGF", WakeUps(wake_ns)),
                Semaphore(env, "AGI", WakeUps(0)),
            )
            for number, free in enumerate(longest)
        ]
        self.found: list[tuple[int, int]] = []

    def hold(self, number: int, until_ns: int, then_free: int) -> None:
        """Let another task hold the AGF of a group until *until_ns*, and leave *then_free* blocks."""
        group = self.groups[number]
        assert group.agf.try_down()

        def end() -> None:
            group.free = FreeSpace(0, then_free)
            group.agf.up(self.env.task("holder"))

        self.env.call_at(until_ns, 0, end)

    def ask(self, target: int, length: int) -> list[tuple[int, int]]:
        """Return when a group was locked, and which group."""

        def body(task: Task) -> Steps:
            thread: Any = SimpleNamespace(task=task, spent=Spent(), before_sleep=lambda: None)
            group = yield from lock_group(self.groups, thread, self.groups[target], length)
            self.found.append((self.env.now, group.number))

        task = self.env.task("flusher")
        self.env.start(task, body(task))
        self.env.run()
        return self.found


def test_the_search_begins_at_the_target_and_goes_round() -> None:
    """Group 1 has too few blocks, group 2 is locked, group 3 has too few blocks, and group 0 is taken."""
    of = Groups(9, 2, 9, 2)
    of.hold(2, 50, 9)
    assert of.ask(1, 5) == [(0, 0)]


def test_task_waits_for_the_target_if_all_groups_are_locked() -> None:
    """The task waits for group 1 until 70, although group 0 is free earlier."""
    of = Groups(9, 9)
    of.hold(0, 50, 9)
    of.hold(1, 70, 9)
    assert of.ask(1, 5) == [(70, 1)]


def test_task_searches_on_if_the_target_is_full_after_waiting() -> None:
    """The task waits for group 1 until 70, finds too few blocks, unlocks the group, and takes group 0."""
    of = Groups(9, 9)
    of.hold(0, 50, 9)
    of.hold(1, 70, 2)
    assert of.ask(1, 5) == [(70, 0)]
    assert of.groups[1].agf.free


def test_longest_free_extent_is_taken_if_none_is_enough() -> None:
    """A request for eight blocks gets the group with four, and fails if no block is free."""
    assert Groups(2, 4).ask(0, 8) == [(0, 1)]
    with pytest.raises(NoSpace, match="is full"):
        Groups(0, 0).ask(0, 8)


def test_a_task_that_waits_wakes_up_as_the_owner() -> None:
    """All groups are locked: the target is handed over at 31, and the task runs 7 ns later."""
    of = Groups(9, 9, 9, wake_ns=7)
    for number in range(3):
        of.hold(number, 30 + number, 9)
    assert of.ask(1, 5) == [(38, 1)]


def test_a_task_flushes_its_plug_before_it_waits() -> None:
    """The task waits for a locked target and for the update of the reverse mapping.

    For a free group the task does not wait.
    """
    of, flushed = Groups(9), list[int]()
    of.hold(0, 50, 9)

    def body(task: Task) -> Steps:
        thread: Any = SimpleNamespace(
            task=task, spent=Spent(), before_sleep=lambda: flushed.append(of.env.now)
        )
        yield from lock_group(of.groups, thread, of.groups[0], 5)
        of.groups[0].agf.up(task)
        yield from of.groups[0].update_rmap(thread, 20, completes=False)
        assert of.env.now == 70
        of.hold(0, 100, 9)
        yield from of.groups[0].update_rmap(thread, 20, completes=False)
        assert of.env.now == 120

    task = of.env.task("flusher")
    of.env.start(task, body(task))
    of.env.run()
    assert flushed == [0, 70]
    assert of.groups[0].agf.free


@pytest.mark.parametrize(("completes", "path"), [(True, "complete"), (False, "allocate")])
def test_update_of_the_reverse_mapping_is_spent_after_the_wait(completes: bool, path: str) -> None:
    """The AGF is locked until 100, and a run may end before; the update takes from 100 to 120."""
    groups, spent, samples = Groups(9), Spent(), list[int]()
    groups.hold(0, 100, 9)

    def body(task: Task) -> Steps:
        thread: Any = SimpleNamespace(task=task, spent=spent, before_sleep=lambda: None)
        yield from groups.groups[0].update_rmap(thread, 20, completes=completes)

    task = groups.env.task("worker")
    groups.env.start(task, body(task))
    groups.env.call_at(99, 0, lambda: samples.append(spent.system))
    groups.env.run()
    assert (samples, spent.by_path()[path], groups.env.now) == ([0], 20, 120)
