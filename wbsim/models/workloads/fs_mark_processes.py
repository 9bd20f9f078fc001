"""The processes of fs_mark: a parent, and children that create, write and close small files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from math import fsum
from typing import Any, Final, NamedTuple

from wbsim.models.interfaces import Inode, Thread
from wbsim.models.parts import Parts
from wbsim.models.scheduler.cpu import cond_resched
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.models.vfs.sync import SystemCalls
from wbsim.models.workloads.processes import Family, Pace
from wbsim.models.workloads.spec import Iteration, Reckoned
from wbsim.sim.engine import Steps, Wait
from wbsim.sim.units import S

ROTATE_NS: Final = 180 * S  # secs_per_directory


class Plan(NamedTuple):
    """The files of a run.

    In each of *loops* loops, each of *processes* processes makes *files* files.  The write(2) calls of a file
    dirty *write_pages* pages each.  *subdirs* and *per_subdir* are fs_mark's -D and -N.  *until_steady*: see
    `models.workloads.processes`.
    """

    processes: int
    loops: int
    files: int
    write_pages: Sequence[int]
    directories: Sequence[str]
    subdirs: int
    per_subdir: int
    until_steady: bool = False


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


class FsMark:
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
        self._env = env = parts.env
        self.plan = plan
        self._times = times
        self._mount_of = calls.mount_of
        self._writer = calls.writer
        self._variations = [parts.variation(f"process {i}") for i in range(plan.processes)]
        self.on_end = on_end
        self._rates: list[float] = []
        self._app_ns = 0
        self.family = Family(parts, plan.processes)
        self.pace: Pace | None = None
        if plan.until_steady:
            mounts = dict.fromkeys(calls.mount_of(path) for path in plan.directories)
            inodes = [mount.inodes for mount in mounts]
            total = plan.processes * plan.loops * plan.files
            self.pace = Pace(env, total, lambda: self.family.system_ns, inodes)
        self.iterations: list[Iteration] = []
        self.on_iteration: Callable[[Iteration], None] = lambda _: None
        env.start(self.family.parent.task, self._iterate(), start_ns)

    @property
    def reckoned(self) -> Reckoned:
        """See `Reckoned`."""
        return Reckoned() if self.pace is None else self.pace.reckoned

    @property
    def share_done(self) -> float:
        """Return the share of the run that is done (0 to 1)."""
        if self.pace is not None and self.pace.over:
            return 1.0
        return len(self.iterations) / self.plan.loops

    @property
    def system_ns(self) -> int:
        """Return the system time of all processes: work and spinning, as time(1) sees it."""
        return self.family.system_ns

    @property
    def user_ns(self) -> int:
        """Return the user time of all processes."""
        return self.family.user_ns

    def _iterate(self) -> Steps:
        """Run the parent: fork all processes, wait for all, print a line."""
        plan, times, family = self.plan, self._times, self.family
        for loop in range(plan.loops):
            self._rates, self._app_ns = [], 0
            for index, child in enumerate(family.children):
                yield from family.fork(child, self._process(index), times.fork_ns, times.start_ns)
            yield from family.wait()
            count = self._made(loop)
            iteration = Iteration(count, fsum(self._rates), self._app_ns // 1000, self._env.now)
            self.iterations.append(iteration)
            self.on_iteration(iteration)
            if self.pace is not None and self.pace.over:
                break
            if loop + 1 < plan.loops:
                family.parent.spent.fork += times.report_ns
                yield times.report_ns
        self.on_end()

    def _made(self, loop: int) -> int:
        """Return the number of files after *loop*; after the last loop, with the reckoned files."""
        loops = self.plan.loops if self.pace is not None and self.pace.over else loop + 1
        return loops * self.plan.processes * self.plan.files

    def _process(self, index: int) -> Steps:
        """Run a child: create, write and close its files."""
        plan, times, env = self.plan, self._times, self._env
        thread = self.family.children[index]
        task, spent = thread.task, thread.spent
        top = plan.directories[index % len(plan.directories)]
        mount = self._mount_of(top)
        fs, names = mount.filesystem, mount.filesystem.names
        factors, writer = self._variations[index], self._writer(thread)
        first, *others = plan.write_pages
        lead_ns = times.app_user_ns + times.app_system_ns
        began_ns = env.now
        subdir, rotated_ns = (env.now // S) % max(plan.subdirs, 1), env.now
        if plan.per_subdir:
            subdir = 0
        directory = yield from self._directory(thread, mount, top, subdir)
        pace = self.pace
        # An empty file is not written to.
        copy_ns = writer.copy_ns(first, mount) if first else 0
        close_ns, per_subdir = writer.close_ns, plan.per_subdir
        for number in range(plan.files):
            if (number and number % per_subdir == 0) if per_subdir else env.now - rotated_ns > ROTATE_NS:
                subdir, rotated_ns = (subdir + 1) % max(plan.subdirs, 1), env.now
                directory = yield from self._directory(thread, mount, top, subdir)
            factor = factors.next()
            owed_ns, task.owed_ns = task.owed_ns, 0
            spent.user += times.app_user_ns
            spent.program += times.app_system_ns
            inode: Inode = yield from names.create(
                thread, directory, lead_ns=lead_ns + owed_ns, factor=factor, then_ns=int(copy_ns * factor)
            )
            yield writer.dirty(inode, fs.append(inode, first), int(close_ns * factor))
            if writer.due(inode.wb):
                yield from writer.balance(inode.wb)
            for pages in others:
                more_ns = int(writer.copy_ns(pages, mount) * factor)
                spent.write += more_ns
                yield more_ns
                yield writer.dirty(inode, fs.append(inode, pages), 0)
                if writer.due(inode.wb):
                    yield from writer.balance(inode.wb)
            fs.close(inode)
            if pace is not None and pace.count():
                break
            if (ready := cond_resched(task)) is not None:
                yield ready
        self._app_ns += plan.files * lead_ns
        self._rates.append(plan.files * S / (env.now - began_ns))

    def _directory(
        self, thread: Thread, mount: MountedSuperblock, top: str, subdir: int
    ) -> Generator[Wait, None, Any]:
        return (yield from mount.directory(thread, f"{top}/{subdir:04x}" if self.plan.subdirs else top))
