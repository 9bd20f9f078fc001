"""Flushers that wait for an allocation group."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import FIO, loop_config, only
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import Machine, build
from wbsim.sim.engine import Steps
from wbsim.sim.units import MS


def held_up(kernel: str, contexts: int) -> Machine:
    """Return a machine after its run, in which a thread held the only group for 4 ms, and again for 3 ms."""
    text = loop_config(
        f"{FIO} --rw=randwrite --nrfiles=4 --filesize=4m --name=a --directory=/a --name=b --directory=/b",
        dirty_mib=2, kernel=kernel,
        more=f'kernel.flusher = {{ kind = "parallel", by = "hash", contexts = {contexts} }}\n'
        "filesystem.agcount = 1\nsync_after = true",
    )  # fmt: skip
    machine = build(parse(text, "x.toml").cases[0].scenario, 1)
    agf = only(machine.mounts).filesystem.placement.groups[0].agf  # type: ignore[attr-defined]
    thread = machine.thread("holder")

    def hold() -> Steps:
        for length_ns in (4 * MS, 3 * MS):
            if not agf.try_down():
                yield agf.down(thread.task)
            yield length_ns
            agf.up(thread.task)
            yield 2 * MS

    machine.env.start(thread.task, hold(), 305 * MS)
    machine.run()
    return machine


@pytest.mark.parametrize(("kernel", "contexts"), [("3.11", 1), ("3.11", 2), ("6.18", 2)])
def test_waiting_flushers_get_the_group_one_after_another(kernel: str, contexts: int) -> None:
    """All pages are written in the end, and no task keeps a lock."""
    machine = held_up(kernel, contexts)
    filesystem: Any = only(machine.mounts).filesystem
    (stat,) = (lock.stat for lock in machine.locks if lock.name.endswith("/AGF"))
    assert stat.contentions >= contexts
    assert 3 * MS <= stat.wait_max_ns < 5 * MS, "the second flusher gets the AGF directly after the first"
    assert all(file.lock.free for file in filesystem.layouts())
    assert all(group.agf.free for group in filesystem.placement.groups)
    assert machine.cache.dirty == machine.cache.writeback == 0
