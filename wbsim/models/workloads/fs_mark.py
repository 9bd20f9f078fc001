"""fs_mark: forked processes, a barrier per iteration, rates as the tool computes them.

Stands for fs_mark 3.3 (fork_threads, do_run, aggregate_thread_stats).  "Threads" are processes, one or an
exact multiple per directory.  ``-n`` is per process and iteration.  Every iteration forks all processes and
waits for all.

Files/sec is the sum, over the processes, of files divided by the seconds of the process's loop.  The calls of
the sync method (-S) are part of the loop; the wait at the barrier, fork and exit are not.  Left out:
unlinking, and the open(2) and close(2) around an fsync(2) after the loop.
"""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, model_validator

from wbsim.models.parts import Parts
from wbsim.models.syscalls.process import SystemCalls
from wbsim.models.workloads import real_options
from wbsim.models.workloads.command_line import (
    CommandError,
    CommandParser,
    Options,
    is_whole,
    one_line,
    words_of,
)
from wbsim.models.workloads.fs_mark_processes import FsMark, Plan, Times
from wbsim.models.workloads.spec import WorkloadFactory, WorkloadSpec
from wbsim.sim.param import (
    BadValue,
    Bytes,
    BytesOrNone,
    Count,
    CountOrNone,
    Flag,
    Inputs,
    Ns,
    Threads,
    assumed,
    measured,
)
from wbsim.sim.units import MIB, MS, PAGE_BYTES, US

MAX_PROCESSES: Final = 64  # MAX_THREADS
MOST_SYNC_METHOD: Final = 6
FEWEST_RANDOM: Final = 8
"""The least -r: with fewer random letters, files may share a name (2000 files have 1337 names with 2)."""
_MEASURED: Final = "docs/measurements.md A: fs_mark -v on XFS, Linux 6.18"


class FsMarkSpec(WorkloadSpec):
    """One fs_mark command, and the times of the program itself.

    * ``directories``: the directories in which the processes make files (-d).
    * ``processes``: the number of processes, a multiple of the number of directories and at most 64 (-t).
    * ``files``: the number of files that a process makes in an iteration (-n).
    * ``file_size``: the size of a file (-s).
    * ``write_size``: the size of a write(2) (-w).
    * ``loops``: the number of iterations (-L).
    * ``sync_method``: how a process has its files written (-S).  0: not at all.  1: by an fsync(2) before
      each close(2).  The other methods come after its last file.  2: sync(2), and fsync(2) of the first file.
      3: fsync(2) of each file, the last one first.  5: the same in order.  4 and 6: sync(2), and then as 3
      and 5.
    * ``subdirs``: the number of subdirectories (-D).  0: files lie in the directories themselves.
    * ``per_subdir``: the files in a subdirectory before the next one (-N).  0: the clock decides.
    * ``app_user_time``: the program's own time for each file, such as for its name.
    * ``app_system_time``: the time for each file in other system calls: the clock, and a mkdir of an existing
      directory.
    * ``fork_time``: the time to start a process.
    * ``start_time``: the time from a process's first instruction to its loop.
    * ``report_time``: the time between the last exit and the next fork.
    * ``until_steady``: the program ends when its pace is steady, and the rest is computed from that pace;
      only with empty files.
    """

    programs: ClassVar = ("fs_mark", "fsmark")
    purpose: ClassVar = "makes many small files"
    example: ClassVar = "fs_mark -S0 -n 10000 -s 4096 -L 4 -d /mnt/0 -d /mnt/1"
    keeps_files: ClassVar = False
    costs: ClassVar = {
        "app_user_time": measured(3_600, f"{_MEASURED}: user time per file"),
        "app_system_time": measured(
            1_400, f"{_MEASURED}: app overhead minus user time (mkdir of existing directories, clock)"
        ),
        "fork_time": assumed(150 * US, "fork and exit of a small process", 50 * US, 500 * US),
        "start_time": assumed(500 * US, "opening the log, statfs and mkdir", 100 * US, 2 * MS),
        "report_time": assumed(
            1 * MS,
            f"{_MEASURED}: fork, start and report together take about 2 ms an iteration",
            500 * US,
            2 * MS,
        ),
    }
    kind: Literal["fs_mark"] = "fs_mark"
    processes: Threads
    files: Count
    file_size: BytesOrNone
    write_size: Bytes
    loops: Count
    sync_method: Annotated[int, Field(ge=0, le=6)] = 0
    subdirs: CountOrNone
    per_subdir: CountOrNone
    app_user_time: Ns
    app_system_time: Ns
    fork_time: Ns
    start_time: Ns
    report_time: Ns
    until_steady: Flag = False

    @model_validator(mode="after")
    def _check(self) -> FsMarkSpec:
        if self.processes % len(self.directories):
            raise BadValue(
                f"{self.processes} processes are not a multiple of {len(self.directories)} directories;"
                " fs_mark gives each directory the same number", "processes",
            )  # fmt: skip
        if self.until_steady and self.sync_method:
            raise BadValue(
                f"-S {self.sync_method} syncs, but until_steady needs a steady pace; give -S 0",
                "until_steady",
            )
        if self.until_steady and self.file_size:
            raise BadValue(
                f"files have {self.file_size} B, but until_steady needs empty files; give -s 0",
                "until_steady",
            )
        if self.processes > MAX_PROCESSES:
            raise BadValue(
                f"{self.processes} is more than fs_mark runs; give at most {MAX_PROCESSES}", "processes"
            )
        return self

    @property
    def total_files(self) -> int:
        """The number of files that the command makes, in all loops."""
        return self.processes * self.files * self.loops

    @property
    def bytes_each(self) -> int:
        """See `WorkloadSpec.bytes_each`."""
        return self.file_size

    @classmethod
    def options(cls) -> dict[str, Options]:
        """See `WorkloadSpec.options`."""
        return {"fs_mark": OPTIONS}

    @classmethod
    def fields_of(cls, lines: Sequence[str]) -> Inputs:
        """See `WorkloadSpec.fields_of`."""
        return parse_command(one_line(lines, "fs_mark"))


@cache
def _parser() -> CommandParser:
    parser = CommandParser(real_options.FS_MARK)
    for flag, default in _OPTIONS.items():
        parser.add_argument(f"-{flag}", dest=flag, type=_number(flag), default=default)
    parser.add_argument("-d", dest="d", action="append", required=True)
    parser.add_argument("-l", dest="l")
    for flag in ("k", "v", "F"):
        parser.add_argument(f"-{flag}", dest=flag, action="store_true")
    return parser


def parse_command(line: str) -> Inputs:
    """Return the fields of `FsMarkSpec` that an fs_mark command line gives.

    Numbers follow the tool, which reads them with ``atoi``; a suffix, which it would drop, is refused.  See
    `WorkloadSpec.fields_of`; ``ignored`` has the options without effect.

    >>> fields = parse_command("fs_mark -k -S0 -n 100 -s 4096 -d /mnt/0 -d /mnt/1")
    >>> fields["processes"], fields["files"], fields["sync_method"], fields["ignored"]
    (2, 100, 0, ['-k'])

    Raises:
        CommandError: the line is not an fs_mark command, or has an unknown option or one that is not
            modelled.
    """
    words = words_of(line)
    if words[0].rsplit("/", 1)[-1] not in ("fs_mark", "fsmark"):
        raise CommandError(f"{line!r} is not an fs_mark command; begin with fs_mark")
    options = _parser().parse_args(words[1:])
    if complaints := list(_faults_of(options)):
        raise CommandError(*complaints)
    processes = max(options.t, len(options.d))
    return {
        "kind": "fs_mark",
        "processes": processes,
        "directories": options.d,
        "files": options.n,
        "file_size": options.s,
        "write_size": options.w,
        "loops": options.L or 1,
        "sync_method": options.S,
        "subdirs": options.D,
        "per_subdir": options.N,
        "ignored": [f"-{flag}" for flag in ("k", "v", "l", "p") if getattr(options, flag) != _DROPPED[flag]],
    }


def _faults_of(options: Namespace) -> Iterator[str]:
    """Yield what fs_mark refuses in *options*, and what is not modelled."""
    for flag, most, unit in _MOST:
        if getattr(options, flag) > most:
            yield f"-{flag} {getattr(options, flag)} is refused by fs_mark; give at most {most}{unit}"
    if options.D == 1:
        yield "-D 1 is refused by fs_mark; give 2 or more subdirectories, or leave it out"
    if options.N and not options.D:
        yield f"-N {options.N} without -D is refused by fs_mark; add -D with 2 or more subdirectories"
    if options.F:
        yield "-F is not modelled: it runs until no room is left; use -L with a number of loops"
    if not (options.L or options.k):
        yield "without -L or -k fs_mark deletes the files, which is not modelled; add -k"
    if options.r < FEWEST_RANDOM:
        yield (
            f"-r {options.r} is not modelled: several files may get one name; give {FEWEST_RANDOM} or more"
        )


_MOST: Final = (
    ("S", MOST_SYNC_METHOD, ""), ("n", 1_000_000, ""), ("w", MIB, " B"), ("t", MAX_PROCESSES, ""),
)  # fmt: skip
"""The largest values that fs_mark takes."""
_DROPPED: Final[dict[str, object]] = {"k": False, "v": False, "l": None, "p": 40}
"""The options without effect here, with their defaults."""


_OPTIONS: Final = {
    "S": 1,
    "n": 1000,
    "s": 51200,
    "w": 16384,
    "L": 0,
    "t": 1,
    "D": 0,
    "N": 0,
    "p": 40,
    "r": 24,
}


OPTIONS: Final = Options(
    tuple(f"-{flag}" for flag in (*_OPTIONS, "d") if flag not in _DROPPED),
    tuple(f"-{flag}" for flag in _DROPPED),
    {"-F": "it runs until no room is left; use -L", "-h": "it prints the usage"},
)
"""All options of fs_mark."""


def _number(flag: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not is_whole(text):
            raise ArgumentTypeError(f"{text!r} is not a plain number, which fs_mark needs; write only digits")
        return int(text)

    return read


def fs_mark(
    *,
    parts: Parts,
    spec: FsMarkSpec,
    program_scale: float,
    start_ns: int,
    calls: SystemCalls,
    on_end: Callable[[], None],
) -> FsMark:
    """Return a running fs_mark, which begins at *start_ns*; *on_end* is called at its end.

    *parts* makes the threads of the processes of *spec*, and *calls* their system calls.  *program_scale*:
    the factor on the program's own times.
    """
    plan = Plan(
        spec.processes, spec.loops, spec.files, _write_pages(spec), spec.directories, spec.subdirs,
        spec.per_subdir, spec.until_steady, spec.sync_method,
    )  # fmt: skip
    times = (
        spec.app_user_time, spec.app_system_time, spec.fork_time, spec.start_time, spec.report_time,
    )  # fmt: skip
    return FsMark(
        parts=parts,
        plan=plan,
        times=Times(*(round(time * program_scale) for time in times)),
        start_ns=start_ns,
        calls=calls,
        on_end=on_end,
    )


def _write_pages(spec: FsMarkSpec) -> list[int]:
    """Return the number of pages that each write(2) of a file is the first to write to.

    It is 0 for a write that ends in the page in which the previous one ended.
    """
    size, step = spec.file_size, spec.write_size
    ends = [*range(step, size, step), size]
    pages = [-(-end // PAGE_BYTES) for end in ends]
    return [end - start for start, end in zip([0, *pages], pages, strict=False)]


SPEC = FsMarkSpec
COMPONENT: WorkloadFactory = fs_mark
