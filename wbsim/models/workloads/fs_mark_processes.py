"""The processes of fs_mark: a parent, and children that create, write and close small files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from math import fsum
from typing import Final, NamedTuple

from wbsim.models.interfaces import Inode
from wbsim.models.parts import Parts
from wbsim.models.syscalls.process import Folder, Process, SystemCalls
from wbsim.models.workloads.program import Pace, Program
from wbsim.models.workloads.spec import Iteration
from wbsim.sim.engine import Steps, Wait
from wbsim.sim.units import S

ROTATE_NS: Final = 180 * S  # secs_per_directory
FSYNC_BEFORE_CLOSE: Final = 1
SYNC_AND_FIRST: Final = 2
REVERSE: Final = (3, 4)
SYNC_FIRST: Final = (2, 4, 6)
"""Values of fs_mark's -S."""


class Plan(NamedTuple):
    """The files of a run.

    In each of *loops* loops, each of *processes* processes makes *files* files.  The write(2) calls of a file
    dirty *write_pages* pages each.  *subdirs*, *per_subdir* and *sync_method* are fs_mark's -D, -N and -S,
    and *directories* its -d. *until_steady*: see `models.workloads.program`.
    """

    processes: int
    loops: int
    files: int
    write_pages: Sequence[int]
    directories: Sequence[str]
    subdirs: int
    per_subdir: int
    until_steady: bool = False
    sync_method: int = 0


class Times(NamedTuple):
    """Processor time of the program itself (ns).

    ``app_user_ns`` and ``app_system_ns`` are for each file, ``fork_ns`` and ``start_ns`` for each process,
    and ``report_ns`` for each line that it prints.
    """

    app_user_ns: int
    app_system_ns: int
    fork_ns: int
    start_ns: int
    report_ns: int


class FsMark(Program):
    """A running fs_mark.

    ``iterations`` grows with each line that it prints.  ``on_iteration`` is called with each line, *on_end*
    at the end.
    """

    def __init__(
        self,
        *,
        parts: Parts,
        plan: Plan,
        times: Times,
        start_ns: int,
        calls: SystemCalls,
        on_end: Callable[[], None],
    ) -> None:
        super().__init__(parts, calls, plan.processes, on_end)
        self._env = env = parts.env
        self.plan = plan
        self._times = times
        self._rates: list[float] = []
        self._app_ns = 0
        self.pace: Pace | None = None
        if plan.until_steady:
            mounts = dict.fromkeys(calls.mount_of(path) for path in plan.directories)
            inodes = [mount.inodes for mount in mounts]
            total = plan.processes * plan.loops * plan.files
            self.pace = Pace(env, total, lambda: self.family.system_ns, inodes)
        self.iterations: list[Iteration] = []
        parts.begin(self.family.parent.task, self._iterate(), start_ns)

    @property
    def share_done(self) -> float:
        """The share of the loops that have ended (0 to 1).

        With ``until_steady``: 1 once no file is left to make, because the time of the rest is extrapolated.
        """
        if self.pace is not None and self.pace.is_over:
            return 1.0
        return len(self.iterations) / self.plan.loops

    def _iterate(self) -> Steps:
        """Run the parent: fork all processes, wait for all, print a line."""
        plan, times, family = self.plan, self._times, self.family
        for loop in range(plan.loops):
            self._rates, self._app_ns = [], 0
            for index, child in enumerate(family.children):
                yield from family.fork(child, self._process(index, child), times.fork_ns, times.start_ns)
            yield from family.wait()
            if self.pace is not None:
                self.reckoned = self.pace.reckoned
            count = self._file_count(loop)
            iteration = Iteration(count, fsum(self._rates), self._app_ns // 1000, self._env.now)
            self.iterations.append(iteration)
            self.on_iteration(iteration)
            if self.pace is not None and self.pace.is_over:
                break
            if loop + 1 < plan.loops:
                yield family.prints(times.report_ns)
        self.on_end()

    def _file_count(self, loop: int) -> int:
        """Return the number of files after *loop*; after the last loop, with the reckoned files."""
        loops = self.plan.loops if self.pace is not None and self.pace.is_over else loop + 1
        return loops * self.plan.processes * self.plan.files

    def _process(self, index: int, process: Process) -> Steps:
        """Run a child: create, write and close its files."""
        plan, times, env, pace = self.plan, self._times, self._env, self.pace
        write_pages, writes = plan.write_pages, len(plan.write_pages)
        method, inodes = plan.sync_method, list[Inode]()
        first, single = write_pages[0], writes == 1 and method != FSYNC_BEFORE_CLOSE
        user_ns, system_ns = times.app_user_ns, times.app_system_ns
        began_ns = env.now
        # Without -N the clock chooses the first subdirectory, too, so later loops may begin in another one.
        subdir, rotated_ns = (env.now // S) % max(plan.subdirs, 1), env.now
        per_subdir = plan.per_subdir
        if per_subdir:
            subdir = 0
        folder = yield from self._folder(process, index, subdir)
        for number in range(plan.files):
            if (number and number % per_subdir == 0) if per_subdir else env.now - rotated_ns > ROTATE_NS:
                subdir, rotated_ns = (subdir + 1) % max(plan.subdirs, 1), env.now
                folder = yield from self._folder(process, index, subdir)
            process.works(user_ns, system_ns)
            inode = yield from process.creat(folder, first, closes=not first and method != FSYNC_BEFORE_CLOSE)
            if first:  # an empty file is not written to
                yield process.write(inode, first, single)
            for more in range(1, writes):
                closes = more + 1 == writes and method != FSYNC_BEFORE_CLOSE
                yield process.write(inode, write_pages[more], closes)
            if method == FSYNC_BEFORE_CLOSE:
                yield from process.fsync(inode)
            elif method and (not inodes or method != SYNC_AND_FIRST):
                inodes.append(inode)
            ends = pace is not None and pace.count()
            if (ready := process.close(inode)) is not None:
                yield ready
            if ends:
                break
        if method > FSYNC_BEFORE_CLOSE:
            yield from self._sync(process, inodes)
        self._app_ns += plan.files * (user_ns + system_ns)
        self._rates.append(plan.files * S / (env.now - began_ns))

    def _sync(self, process: Process, inodes: list[Inode]) -> Steps:
        """Have the files of *inodes* written after the last of them: the methods from `SYNC_AND_FIRST` on."""
        method = self.plan.sync_method
        if method in SYNC_FIRST:
            yield from process.sync()
        for inode in reversed(inodes) if method in REVERSE else inodes:
            yield from process.fsync(inode)

    def _folder(self, process: Process, index: int, subdir: int) -> Generator[Wait, None, Folder]:
        """Return the directory of the process at *index* in which the next files are made."""
        plan = self.plan
        top = plan.directories[index % len(plan.directories)]
        return (yield from process.mkdir(f"{top}/{subdir:04x}" if plan.subdirs else top))
