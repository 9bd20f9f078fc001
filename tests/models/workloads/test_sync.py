"""sync and sync -f as programs: their processes, their filesystems, and their interval."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wbsim.models.syscalls.process import SystemCalls
from wbsim.models.time_accounting import Spent
from wbsim.models.vfs.spec import WriteCosts
from wbsim.models.workloads.spec import Iteration
from wbsim.models.workloads.sync import SyncProcesses, SyncSpec, parse_command
from wbsim.sim.engine import Environment, Steps


class Stage:
    """Two mounts on which sync(2) takes *sync_ns* and syncfs(2) takes 5 ns."""

    def __init__(self, sync_ns: int) -> None:
        self.env = Environment()
        self.sync_ns = sync_ns
        self.log: list[tuple[int, str]] = []
        self.mounts: Any = {path: f"mount {path[:2]}" for path in ("/a", "/a/x", "/b")}

    def sync(self, thread: Any) -> Steps:
        """sync(2)."""
        yield self.sync_ns
        self.log.append((self.env.now, thread.task.name))

    def syncfs(self, thread: Any, mount: str) -> Steps:
        """syncfs(2)."""
        yield 5
        self.log.append((self.env.now, mount))

    def run(self, until_ns: int = 1_000, **fields: Any) -> list[int]:
        """Return the times at which all processes of an iteration were done."""

        def thread(name: str) -> Any:
            return SimpleNamespace(task=self.env.task(name), spent=Spent())

        parts: Any = SimpleNamespace(
            env=self.env, thread=thread, process=thread, variation=lambda _: None, begin=self.env.start
        )
        costs = WriteCosts(call_ns=0, page_ns=0, close_ns=0, mark_ns=0)
        throttle: Any = SimpleNamespace(dirtier=lambda: None)
        syncs: Any = self
        calls = SystemCalls(self.env, self.mounts.__getitem__, costs, throttle, syncs, 1)
        ends: list[int] = []

        def record_end(iteration: Iteration) -> None:
            ends.append(iteration.end_ns)

        spec = SyncSpec(fork_time=10, **fields)
        program = SyncProcesses(
            parts=parts, spec=spec, program_scale=1.0, start_ns=100, calls=calls, on_end=self.env.halt
        )
        program.on_iteration = record_end
        self.env.call_at(until_ns, 1 << 50, self.env.halt)
        self.env.run()
        return ends


def test_forked_syncs_run_at_the_same_time() -> None:
    """Three processes start 10 ns apart, and the program is done when all of them are."""
    stage = Stage(30)
    assert stage.run(times=3) == [160]
    assert stage.log == [(140, "process 0"), (150, "process 1"), (160, "process 2")]


@pytest.mark.parametrize(
    ("sync_ns", "ends"),
    [(30, [140, 340, 540, 740, 940]), (190, [300, 500, 700, 900]), (290, [400, 700, 1_000])],
)
def test_syncs_begin_every_interval_or_after_a_late_end(sync_ns: int, ends: list[int]) -> None:
    """The interval is 200 ns.  Syncs of 30 and 190 ns end within the interval, and one of 290 ns does not."""
    assert Stage(sync_ns).run(until_ns=1_000, every=200) == ends


def test_each_filesystem_is_synced_once() -> None:
    """Two of the three paths are on one filesystem."""
    stage = Stage(30)
    assert stage.run(directories=("/a", "/b", "/a/x")) == [120]
    assert stage.log == [(115, "mount /a"), (120, "mount /b")]


def test_paths_of_sync_are_files_but_with_f() -> None:
    """sync without paths has neither; -d is fdatasync(2) of files."""
    assert parse_command("sync") == {"kind": "sync", "directories": [], "files": [], "datasync": False}
    for line, datasync in (("sync /a /b", False), ("sync -d /a /b", True), ("sync --data /a /b", True)):
        assert parse_command(line) == {
            "kind": "sync", "directories": [], "files": ["/a", "/b"], "datasync": datasync,
        }  # fmt: skip
    assert parse_command("sync -f /a /b") == {"kind": "sync", "directories": ["/a", "/b"]}
