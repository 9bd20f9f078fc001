"""Programs that run one operation on every file below some directories.

The files are the files that their mounts have at the start (`models.scenario.MountSpec`).  They are empty,
and their inodes are not cached.  All processes take equal shares of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from wbsim.models.parts import Parts
from wbsim.models.syscalls.process import Process, SystemCalls
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.models.workloads.program import Pace, Program
from wbsim.models.workloads.spec import Directories, Iteration, WorkloadSpec
from wbsim.sim.engine import Steps
from wbsim.sim.param import Flag, Ns, Threads
from wbsim.sim.units import S


class TreeSpec(WorkloadSpec):
    """The options of a program that walks over files.

    * ``directories``: the directories whose mounts have the files.
    * ``times``: the number of processes that run at once and share the files.
    * ``until_steady``: the program ends when its pace is steady, and the rest is computed from that pace.
    * ``app_user_time``: the program's own time for each file.
    * ``app_system_time``: the time for each file in system calls other than the main one.
    * ``fork_time``: the time that the shell takes to start a process.
    """

    keeps_files: ClassVar[bool] = False
    reads_files: ClassVar[bool] = True
    directories: Directories
    times: Threads = 1
    until_steady: Flag = False
    app_user_time: Ns
    app_system_time: Ns
    fork_time: Ns

    @property
    def total_files(self) -> int:
        """Zero: the program makes no files."""
        return 0

    @property
    def bytes_each(self) -> int:
        """Zero: the program makes no files."""
        return 0

    def makes(self) -> Iterator[tuple[str, int, int]]:
        """See `WorkloadSpec.makes`: the program makes no files at its paths."""
        for directory in self.directories:
            yield directory, 0, 0


class TreeProcesses(Program):
    """The running processes, which run *operation* on each file."""

    def __init__(
        self,
        *,
        parts: Parts,
        spec: TreeSpec,
        program_scale: float,
        start_ns: int,
        calls: SystemCalls,
        on_end: Callable[[], None],
        operation: Callable[[Process, MountedSuperblock], Steps],
    ) -> None:
        super().__init__(parts, calls, spec.times, on_end)
        self._env = parts.env
        self._times = spec.times
        self._operation = operation
        self._mounts = list(dict.fromkeys(calls.mount_of(path) for path in spec.directories))
        self._user_ns = round(spec.app_user_time * program_scale)
        self._program_ns = round(spec.app_system_time * program_scale)
        self._fork_ns = round(spec.fork_time * program_scale)
        self.files = sum(mount.files for mount in self._mounts)
        self.pace: Pace | None = None
        if spec.until_steady:
            inodes = [mount.inodes for mount in self._mounts]
            self.pace = Pace(self._env, self.files, lambda: self.family.system_ns, inodes)
        self.done = 0
        parts.begin(self.family.parent.task, self._run(), start_ns)

    @property
    def share_done(self) -> float:
        """The share of the files that are done (0 to 1)."""
        return self.done / self.files

    def _run(self) -> Steps:
        family, began_ns = self.family, self._env.now
        for number, process in enumerate(family.children):
            yield from family.fork(process, self._process(number, process), self._fork_ns)
        yield from family.wait()
        if self.pace is not None:
            self.reckoned = self.pace.reckoned
        self.done, now = self.files, self._env.now
        self.on_iteration(Iteration(self.files, self.files * S / (now - began_ns), 0, now))
        self.on_end()

    def _process(self, number: int, process: Process) -> Steps:
        for mount in self._mounts:
            share = mount.files * (number + 1) // self._times - mount.files * number // self._times
            yield self._walk(process, mount, share)

    def _walk(self, process: Process, mount: MountedSuperblock, files: int) -> Steps:
        user_ns, program_ns, operation, pace = self._user_ns, self._program_ns, self._operation, self.pace
        for _ in range(files):
            if pace is not None and pace.is_over:
                return
            process.works(user_ns, program_ns)
            yield from operation(process, mount)
            self.done += 1
            if pace is not None:
                pace.count()
            if (ready := process.returns()) is not None:
                yield ready
