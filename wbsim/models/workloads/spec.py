"""The spec that all workloads share, the programs that are made from it, and their reports."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, NamedTuple, Protocol

from pydantic import BeforeValidator, Field

from wbsim.models.kinds import kind_field
from wbsim.models.parts import Parts
from wbsim.models.syscalls.latency import Latencies
from wbsim.models.syscalls.process import SystemCalls
from wbsim.models.workloads.command_line import Options
from wbsim.sim.param import Inputs, Spec, measured
from wbsim.sim.units import US

SHELL_FORK: Final = measured(480 * US, "docs/measurements.md L: a shell starts a program in the background")
"""``fork_time`` of programs that a shell starts (ns)."""


MOST_DIRECTORIES: Final = 100_000


def plain_path(path: str) -> str:
    """Return *path* in the one form that all of its spellings have; symbolic links are not modelled.

    A relative path stays relative.

    >>> plain_path("//data/./logs//../f")
    '/data/f'
    """
    plain = posixpath.normpath(path)
    return plain[1:] if plain.startswith("//") else plain  # normpath keeps two slashes at the beginning


def _numbered(value: object) -> object:
    """Return the names 0, 1, 2 ... for a bare number of directories, or the plain paths of a list.

    >>> _numbered(3), _numbered(["/mnt/./a"])
    (('0', '1', '2'), ('/mnt/a',))
    """
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= MOST_DIRECTORIES:
            raise ValueError(f"{int(value)} directories; give 1 to {MOST_DIRECTORIES}, or a list of paths")
        return tuple(str(number) for number in range(value))
    if isinstance(value, list | tuple):
        for path in value:
            if isinstance(path, str) and not (path and path.isprintable()):
                raise ValueError(f"{path!r} is not a path; give printable characters")
        return tuple(plain_path(path) if isinstance(path, str) else path for path in value)
    return value


AnyDirectories = Annotated[tuple[str, ...], BeforeValidator(_numbered)]
"""Paths, or their number; may be empty."""
Directories = Annotated[AnyDirectories, Field(min_length=1)]
"""Paths, each of which chooses its mount; or their number, if the place does not matter."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """The report of a workload after an iteration.

    * ``count``: the number of files so far.
    * ``files_per_sec``: the rate, summed over the processes.
    * ``app_overhead_us``: the overhead of the program itself.
    * ``end_ns``: the time of the report.
    """

    count: int
    files_per_sec: float
    app_overhead_us: int
    end_ns: int


class Reckoned(NamedTuple):
    """The part that a program left out because its pace was steady, computed from this pace.

    The part is a number of ``files``, the time ``ns`` that they would take, and the program's ``system_ns``
    in that time.  All are 0 if nothing was left out.
    """

    files: int = 0
    ns: int = 0
    system_ns: int = 0


class JobDone(NamedTuple):
    """The work of a job, which all processes with its name did together.

    * ``took_ns``: from the begin of its first process until the end of its last, without the program's start.
    * ``files``, ``bytes`` and ``writes``: the files that it wrote to, and what it wrote.
    * ``system_ns`` and ``user_ns``: the processor time of its processes.
    * ``latencies``: those of their system calls.
    """

    took_ns: int
    files: int
    bytes: int
    writes: int
    system_ns: int
    user_ns: int
    latencies: Latencies


class Workload(Protocol):
    """A running program, which begins by itself.

    The program calls ``on_iteration`` with each report, and ``on_end`` once, at its end.
    """

    on_iteration: Callable[[Iteration], None]
    on_end: Callable[[], None]

    @property
    def reckoned(self) -> Reckoned:
        """The files that the program left out because its pace was steady, and their times (ns)."""

    @property
    def system_ns(self) -> int:
        """The system time (ns) of all processes but the parent so far, as time(1) sees it.

        The time is work in the kernel, spinning and interrupts, also of the workers of their rings.
        """

    @property
    def user_ns(self) -> int:
        """The user time (ns) of all processes but the parent so far, with pauses through which they spun."""

    @property
    def latencies(self) -> Latencies:
        """The latencies of the system calls of all processes so far, the parent included."""

    @property
    def jobs_done(self) -> dict[str, JobDone]:
        """The work that each job of the program did, by its name; empty if the program has no jobs."""

    @property
    def written_bytes(self) -> int | None:
        """The bytes that all processes have written so far; None: they are those of the files of its spec."""

    @property
    def failed(self) -> dict[str, int]:
        """The number of processes that each error ended, by the message of the error; empty: none."""

    @property
    def share_done(self) -> float:
        """The share of the work that is done (0 to 1), which the progress on the terminal shows."""


class WorkloadFactory(Protocol):
    """Makes the program of a spec of this folder."""

    def __call__(
        self,
        *,
        parts: Parts,
        spec: Any,
        program_scale: float,
        start_ns: int,
        calls: SystemCalls,
        on_end: Callable[[], None],
    ) -> Workload:
        """Return a program that begins at *start_ns*."""


FROM_THE_COMMAND: Final = ("kind", "ignored")
"""The fields of a `WorkloadSpec` that a configuration cannot set."""


class WorkloadSpec(Spec):
    """A program and its options.

    * ``programs``: the names that the command may have.
    * ``costs``: the program's own times on the reference machine, which the command does not give.
    * ``keeps_files``: the files are looked at afterwards, so a sync(2) follows.
    * ``reads_files``: the program needs files that exist before it begins.
    * ``needs_bulkstat``: the program needs a filesystem that reads inodes in bulk.
    * ``endless``: the program continues until all other programs have ended.
    * ``file_option``: the options of the command that name the files.
    * ``directories``: the directories in which the program works.
    * ``ignored``: the options of its command that have no effect here.
    """

    programs: ClassVar[tuple[str, ...]] = ()
    purpose: ClassVar[str] = ""
    """The work of the program, in a few words."""
    example: ClassVar[str] = ""
    """A command line."""
    costs: ClassVar[Inputs] = {}
    keeps_files: ClassVar[bool] = True
    reads_files: ClassVar[bool] = False
    needs_bulkstat: ClassVar[bool] = False
    file_option: ClassVar[str] = ""
    kind: str
    directories: Directories
    ignored: tuple[str, ...] = ()

    @classmethod
    def fields_of(cls, lines: Sequence[str]) -> Inputs:
        """Return the fields of the spec, by name, that the command *lines* give; several lines run at once.

        The ``costs`` are never among them, and fields with a default need not be.

        Raises:
            CommandError: a line cannot be read, or asks for something that is not modelled.
        """
        raise NotImplementedError

    @classmethod
    def options(cls) -> dict[str, Options]:
        """Return the options of each program, by its name, for the reference; `fields_of` checks them."""
        raise NotImplementedError

    @property
    def endless(self) -> bool:
        """True if the program never ends by itself."""
        return False

    @property
    def total_files(self) -> int:
        """The number of files that all processes make or write to; 0 for other calls, such as those of mv.

        Files that exist before the run count, too.  fs_mark makes other files in each loop.  A file that
        several processes of dd or fio write counts for each of them.
        """
        raise NotImplementedError

    @property
    def bytes_each(self) -> int:
        """The length of each file (bytes), if all have the same; otherwise the spec overrides `makes`."""
        raise NotImplementedError

    def makes(self) -> Iterator[tuple[str, int, int]]:
        """Yield each directory, the number of files made there, and the length of each (bytes).

        Checks of mounts and their room use this, and `total_bytes`; the run does not.  A program that makes
        no files yields its paths with zeros, so that their mounts are checked.
        """
        files = self.total_files // len(self.directories)
        for directory in self.directories:
            yield directory, files, self.bytes_each

    def overwrites(self) -> Iterator[tuple[str, int]]:
        """Yield the path and the size (bytes) of each file that is laid out before the run for this program.

        Most programs have none.
        """
        return iter(())

    @property
    def total_bytes(self) -> int:
        """The bytes of all files that the program makes, at their full length: of one pass over them."""
        return sum(files * size for _, files, size in self.makes())


AnyWorkload = Annotated[WorkloadSpec, kind_field("workloads")]
"""The spec of any kind in this folder."""
