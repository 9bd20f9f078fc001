"""What every workload says: where it writes, how much, how its command line is read; and what it reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, NamedTuple, Protocol

from pydantic import BeforeValidator, Field

from wbsim.models.kinds import kind_field
from wbsim.models.parts import Parts
from wbsim.models.vfs.sync import SystemCalls
from wbsim.sim.param import Inputs, Spec, measured
from wbsim.sim.units import US

SHELL_FORK: Final = measured(480 * US, "docs/measurements.md L: a shell starts a program in the background")
"""``fork_time`` of programs that a shell starts (ns)."""


MOST_DIRECTORIES: Final = 100_000


def _numbered(value: object) -> object:
    """A bare number of directories: that many, called 0, 1, 2 ..."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= MOST_DIRECTORIES:
            raise ValueError(f"{int(value)} directories; give 1 to {MOST_DIRECTORIES}, or their paths")
        return tuple(str(number) for number in range(value))
    if isinstance(value, list | tuple):
        for path in value:
            if isinstance(path, str) and not (path and path.isprintable()):
                raise ValueError(f"{path!r} is no path; give one of letters that can be printed")
    return value


AnyDirectories = Annotated[tuple[str, ...], BeforeValidator(_numbered)]
"""Paths, or how many there are; or none."""
Directories = Annotated[AnyDirectories, Field(min_length=1)]
"""Paths, of which each picks its mount; or how many there are, if it does not matter where."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """What a workload reports: files so far, at what rate (summed over its processes), its own overhead, and
    when (ns).
    """

    count: int
    files_per_sec: float
    app_overhead_us: int
    end_ns: int


class Reckoned(NamedTuple):
    """What a program left out because its pace was steady: so many files, and the time (ns) and system time
    that they would have taken.
    """

    files: int = 0
    ns: int = 0
    system_ns: int = 0


class Workload(Protocol):
    """A running program; it begins by itself."""

    on_iteration: Callable[[Iteration], None]
    on_end: Callable[[], None]

    @property
    def reckoned(self) -> Reckoned:
        """See `Reckoned`."""

    @property
    def system_ns(self) -> int:
        """System time of all its processes: work and spinning, as time(1) sees it."""

    @property
    def user_ns(self) -> int:
        """User time of all its processes."""

    @property
    def share_done(self) -> float:
        """How much of it is over."""


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


class WorkloadSpec(Spec):
    """A program and what it is told.

    ``programs``: what its command may be called; ``costs``: what it takes itself on the reference machine,
    which the command does not say; ``keeps_files``: whether its files are looked at afterwards, so that a
    sync(2) follows; ``reads_files``: whether it needs files that are there before, and ``needs_bulkstat``: a
    filesystem that reads inodes in bulk; ``endless``: whether it goes on until all other programs have ended.
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
    kind: str
    directories: Directories

    @classmethod
    def fields_of(cls, lines: Sequence[str]) -> Inputs:
        """The fields that command *lines* give; several of them run at once.

        Raises:
            CommandError: they cannot be read, or ask for what is not modelled.
        """
        raise NotImplementedError

    @property
    def endless(self) -> bool:
        """Whether it never ends by itself."""
        return False

    @property
    def total_files(self) -> int:
        """All files that it makes."""
        raise NotImplementedError

    @property
    def bytes_each(self) -> int:
        """The length of each (bytes), where all are alike."""
        raise NotImplementedError

    def makes(self) -> Iterator[tuple[str, int, int]]:
        """Directories, how many files are made there, and how long each is (bytes)."""
        each = self.total_files // len(self.directories)
        for directory in self.directories:
            yield directory, each, self.bytes_each

    @property
    def total_bytes(self) -> int:
        """What all files hold together."""
        return sum(files * size for _, files, size in self.makes())


AnyWorkload = Annotated[WorkloadSpec, kind_field("workloads")]
"""The spec of any kind in this folder."""
