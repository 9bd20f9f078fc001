"""sync, sync -f and sync FILE: processes that call sync(2), syncfs(2) or fsync(2), once or repeatedly.

A call next to a program that writes a large file may last until that program ends, because it follows the
growing file (`models.syscalls.sync`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from wbsim.models.parts import Parts
from wbsim.models.syscalls.process import Process, SystemCalls
from wbsim.models.workloads import real_options
from wbsim.models.workloads.command_line import (
    CommandError,
    CommandParser,
    Options,
    one_line,
    options_of,
    words_of,
)
from wbsim.models.workloads.program import Program
from wbsim.models.workloads.spec import (
    SHELL_FORK,
    AnyDirectories,
    Iteration,
    WorkloadFactory,
    WorkloadSpec,
    plain_path,
)
from wbsim.sim.engine import Steps
from wbsim.sim.param import Flag, Inputs, Ns, Threads


class SyncSpec(WorkloadSpec):
    """The options of sync.

    * ``directories``: the paths of ``sync -f PATH``: the processes call syncfs(2) of each path's filesystem,
      one after another.  Without a path they call sync(2).
    * ``files``: the paths of ``sync FILE``: the processes call fsync(2) of each file, one after another.
    * ``datasync``: the processes call fdatasync(2) of each file instead (``sync -d FILE``).
    * ``times``: the number of processes that run at once.
    * ``every``: the time after which the processes begin again, or as soon as they are done, until all other
      programs have ended.  Without it, they run once.
    * ``fork_time``: the time that the shell takes to start a process.
    """

    programs: ClassVar = ("sync",)
    purpose: ClassVar = "writes back the dirty pages of one or all filesystems"
    example: ClassVar = "sync -f /mnt"
    keeps_files: ClassVar = False
    costs: ClassVar = {"fork_time": SHELL_FORK}
    kind: Literal["sync"] = "sync"
    directories: AnyDirectories = ()
    files: AnyDirectories = ()
    datasync: Flag = False
    times: Threads = 1
    every: Annotated[Ns, Field(gt=0)] | None = None
    fork_time: Ns

    @property
    def endless(self) -> bool:
        """See `WorkloadSpec.endless`."""
        return self.every is not None

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
        for path in (*self.directories, *self.files):
            yield path, 0, 0

    @classmethod
    def options(cls) -> dict[str, Options]:
        """See `WorkloadSpec.options`."""
        return {
            "sync": options_of(
                ("-f", "--file-system", "-d", "--data"), real_options.SYNC, common="help version"
            )
        }

    @classmethod
    def fields_of(cls, lines: Sequence[str]) -> Inputs:
        """See `WorkloadSpec.fields_of`."""
        return parse_command(one_line(lines, "sync"))


def parse_command(line: str) -> Inputs:
    """Return the fields of a `SyncSpec` that a command line of coreutils' sync gives.

    See `WorkloadSpec.fields_of`: ``times`` and ``every`` are no options of sync.

    >>> parse_command("sync -f /mnt")
    {'kind': 'sync', 'directories': ['/mnt']}

    Raises:
        CommandError: the line cannot be read, or asks for something that is not modelled.
    """
    parser = CommandParser(real_options.SYNC)
    parser.add_argument("-f", "--file-system", dest="file_system", action="store_true")
    parser.add_argument("-d", "--data", dest="data", action="store_true")
    parser.add_argument("paths", nargs="*")
    options = parser.parse_args(words_of(line)[1:])
    if options.data and options.file_system:
        raise CommandError(f"{line!r}: sync refuses -d and -f together; write one of them")
    if (options.data or options.file_system) and not options.paths:
        remedy = "write sync -d FILE" if options.data else "write sync -f PATH"
        raise CommandError(f"{line!r} has no path, without which sync refuses the option; {remedy}")
    if options.file_system:
        return {"kind": "sync", "directories": options.paths}
    return {"kind": "sync", "directories": [], "files": options.paths, "datasync": options.data}


class SyncProcesses(Program):
    """The running syncs; ``on_iteration`` is called each time that all of them are done."""

    def __init__(
        self,
        *,
        parts: Parts,
        spec: SyncSpec,
        program_scale: float,
        start_ns: int,
        calls: SystemCalls,
        on_end: Callable[[], None],
    ) -> None:
        super().__init__(parts, calls, spec.times, on_end)
        self._env = parts.env
        self._spec = spec
        self._files = [plain_path(path) for path in spec.files]
        self._mounts = list({calls.mount_of(path): path for path in spec.directories}.values())
        self.fork_ns = round(spec.fork_time * program_scale)
        self.rounds = 0
        parts.begin(self.family.parent.task, self._run(), start_ns)

    @property
    def share_done(self) -> float:
        """The share of the work that is done (0 or 1); 1 if the syncs are endless."""
        return 1.0 if self._spec.endless or self.rounds else 0.0

    def _run(self) -> Steps:
        """Run the parent: start all processes and wait for all, once or repeatedly."""
        family, every_ns = self.family, self._spec.every
        while True:
            began_ns = self._env.now
            for child in family.children:
                yield from family.fork(child, self._process(child), self.fork_ns)
            yield from family.wait()
            self.rounds += 1
            self.on_iteration(Iteration(0, 0.0, 0, self._env.now))
            if every_ns is None:
                break
            yield from family.rest(max(0, began_ns + every_ns - self._env.now))
        self.on_end()

    def _process(self, process: Process) -> Steps:
        for path in self._files:
            inode = yield from process.open(path, creates=False)
            yield from process.fdatasync(inode) if self._spec.datasync else process.fsync(inode)
            if (ready := process.close(inode)) is not None:
                yield ready
        if not (self._mounts or self._files):
            yield from process.sync()
        for path in self._mounts:
            yield from process.syncfs(path)


SPEC = SyncSpec
COMPONENT: WorkloadFactory = SyncProcesses
