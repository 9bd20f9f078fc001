"""sync and sync -f as programs: how many, of what, and when again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wbsim.models.time_accounting import Spent
from wbsim.models.vfs.sync import SystemCalls
from wbsim.models.workloads.spec import Iteration
from wbsim.models.workloads.sync import SyncProcesses, SyncSpec, parse_command
from wbsim.sim.engine import Environment, Steps


class Stage:
    """Two mounts; a sync takes *sync_ns*, a syncfs 5."""

    def __init__(self, sync_ns: int) -> None:
        self.env = Environment()
        self.sync_ns = sync_ns
        self.log: list[tuple[int, str]] = []
        self.mounts = {path: f"mount {path[:2]}" for path in ("/a", "/a/x", "/b")}

    def sync(self, thread: Any) -> Steps:
        """sync(2)."""
        yield self.sync_ns
        self.log.append((self.env.now, thread.task.name))

    def syncfs(self, thread: Any, mount: str) -> Steps:
        """syncfs(2)."""
        yield 5
        self.log.append((self.env.now, mount))

    def run(self, until_ns: int = 1_000, **fields: Any) -> list[int]:
        """When all processes were done, each time."""

        def thread(name: str) -> Any:
            return SimpleNamespace(task=self.env.task(name), spent=Spent())

        parts: Any = SimpleNamespace(env=self.env, thread=thread, process=thread)
        calls: Any = SystemCalls(self.mounts.__getitem__, None, self)  # type: ignore[arg-type]
        ends: list[int] = []

        def told(iteration: Iteration) -> None:
            ends.append(iteration.end_ns)

        spec = SyncSpec(fork_time=10, **fields)
        program = SyncProcesses(
            parts=parts, spec=spec, program_scale=1.0, start_ns=100, calls=calls, on_end=self.env.halt
        )
        program.on_iteration = told
        self.env.call_at(until_ns, 1 << 50, self.env.halt)
        self.env.run()
        return ends


def test_processes_are_forked_one_after_another_and_sync_at_once() -> None:
    """Three of them, 10 apart; the program is done when all are."""
    stage = Stage(30)
    assert stage.run(times=3) == [160]
    assert stage.log == [(140, "process 0"), (150, "process 1"), (160, "process 2")]


@pytest.mark.parametrize(
    ("sync_ns", "ends"),
    [(30, [140, 340, 540, 740, 940]), (190, [300, 500, 700, 900]), (290, [400, 700, 1_000])],
)
def test_they_begin_again_so_long_after_they_last_began_or_at_once(sync_ns: int, ends: list[int]) -> None:
    """Every 200: a sync of 30 or 190 has ended by then, one of 290 has not."""
    assert Stage(sync_ns).run(until_ns=1_000, every=200) == ends


def test_each_filesystem_is_synced_once() -> None:
    """Two of the three paths lie on one."""
    stage = Stage(30)
    assert stage.run(directories=("/a", "/b", "/a/x")) == [120]
    assert stage.log == [(115, "mount /a"), (120, "mount /b")]


def test_what_the_command_says() -> None:
    """The paths of sync -f; none of sync."""
    assert parse_command("sync") == {"kind": "sync", "directories": []}
    assert parse_command("sync -f /a /b") == {"kind": "sync", "directories": ["/a", "/b"]}
