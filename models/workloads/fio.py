"""fio: buffered writes, random or sequential, into files that are made on opening (create_on_open=1,
fallocate=none).

Jobs are processes; each has a directory and files of its own, takes its files in turn
(file_service_type=roundrobin), and with ``randwrite`` writes each block once in the order of fio's random
map. Left out: reads, direct I/O, fsync, verify.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Literal

from pydantic import model_validator

from models.seams import Site, Thread
from models.vfs.superblock import MountedSuperblock
from models.vfs.write import BufferedWriter
from models.workloads.command_line import CommandError, CommandParser, one_line, words_of
from models.workloads.file_writers import FileWriters, Job, sequential
from models.workloads.random_map import RandomMap
from models.workloads.spec import WorkloadSpec
from sim.param import Bytes, Count, Ns, assumed, measured
from sim.units import GIB, KIB, MIB, MS, PAGE_BYTES, US

Rw = Literal["write", "randwrite"]


class FioSpec(WorkloadSpec):
    """fio's options of the same names, for ``numjobs`` jobs in ``directories`` (one for all, or one each).

    ``rw`` is that of all jobs, or one for each; ``app_time``: user time of fio itself per write;
    ``fork_time``: of each job; ``start_time`` and ``idle_time``: how long fio works and sleeps before its
    first job.
    """

    programs: ClassVar = ("fio",)
    costs: ClassVar = {
        "app_time": measured(300, "docs/measurements.md H: user time per write"),
        "start_time": measured(165 * MS, "docs/measurements.md H: processor time of a fio that writes 4 KiB"),
        "idle_time": measured(115 * MS, "docs/measurements.md H: wall time of it, less its processor time"),
        "fork_time": assumed(150 * US, "as fs_mark's: fork and exit of a small process", 50 * US, 500 * US),
    }
    kind: Literal["fio"] = "fio"
    rw: Rw | tuple[Rw, ...]
    numjobs: Count
    nrfiles: Count
    filesize: Bytes
    app_time: Ns
    fork_time: Ns
    start_time: Ns
    idle_time: Ns

    @model_validator(mode="after")
    def _check(self) -> FioSpec:
        if len(self.directories) not in (1, self.numjobs):
            raise ValueError(
                f"{self.numjobs} jobs in {len(self.directories)} directories: give one, or one for each"
            )
        if isinstance(self.rw, tuple) and len(self.rw) != self.numjobs:
            raise ValueError(
                f"{len(self.rw)} values of rw for {self.numjobs} jobs: give one, or one for each"
            )
        if not self.filesize or self.filesize % PAGE_BYTES:
            raise ValueError(f"filesize {self.filesize} B is no whole number of 4 KiB blocks")
        return self

    @property
    def total_files(self) -> int:
        """All files of all jobs."""
        return self.numjobs * self.nrfiles

    @property
    def bytes_each(self) -> int:
        """See `WorkloadSpec.bytes_each`."""
        return self.filesize

    @classmethod
    def fields_of(cls, lines: Sequence[str]) -> dict[str, Any]:
        """See `WorkloadSpec.fields_of`."""
        return parse_command(one_line(lines, "fio"))


def parse_command(line: str) -> dict[str, Any]:
    """The fields of a `FioSpec` that a fio command line gives; each ``--name`` is a job.

    Sizes are read as fio reads them (kb_base 1024: ``4k`` is 4096 B).

    Raises:
        CommandError: not a fio command, an unknown option, jobs that differ, or what is not modelled.
    """
    program, *words = words_of(line)
    if program.rsplit("/", 1)[-1] != "fio":
        raise CommandError(f"{line!r} is not a fio command; it starts with fio")
    common, *jobs = _by_job(words)
    if not jobs:
        raise CommandError("there is no job; give each a --name")
    given = [vars(_parser().parse_args([*common, *job])) for job in jobs]
    directories = [options["directory"] for options in given for _ in range(options["numjobs"])]
    if len(set(directories)) == 1:
        directories = directories[:1]
    rw = [options["rw"] for options in given for _ in range(options["numjobs"])]
    for options in given:
        del options["name"], options["rw"], options["directory"]
    if any(options != given[0] for options in given):
        raise CommandError(
            "the jobs differ in more than --name, --rw and --directory, which is not modelled yet"
        )
    options = given[0]
    filesize, size = options["filesize"], options["size"]
    if filesize is None and size is None:
        raise CommandError("the size of the files is missing; give --filesize or --size")
    if filesize is None:
        filesize = size // options["nrfiles"]
    elif size not in (None, filesize * options["nrfiles"]):
        raise CommandError(
            "--size differs from nrfiles times --filesize, so that files stay partly empty: not modelled"
        )
    return {
        "kind": "fio",
        "rw": rw[0] if len(set(rw)) == 1 else rw,
        "numjobs": len(rw),
        "directories": directories,
        "nrfiles": options["nrfiles"],
        "filesize": filesize,
    }


def _by_job(words: Sequence[str]) -> list[list[str]]:
    """The options before the first job, and those of each."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word.startswith("--name"):
            parts.append([])
        parts[-1].append(word)
    return parts


def _parser() -> CommandParser:
    """Of what changes the meaning, only what is modelled may be chosen."""
    parser = CommandParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--rw", "--readwrite", dest="rw", choices=["write", "randwrite"], required=True)
    parser.add_argument("--bs", type=_size, choices=[PAGE_BYTES], required=True)
    parser.add_argument("--directory", default=".")
    parser.add_argument("--nrfiles", type=_positive, default=1)
    parser.add_argument("--numjobs", type=_positive, default=1)
    parser.add_argument("--filesize", type=_size)
    parser.add_argument("--size", type=_size)
    parser.add_argument("--create_on_open", choices=["1"], required=True)
    parser.add_argument("--fallocate", choices=["none"], required=True)
    parser.add_argument("--direct", choices=["0"], default="0")
    parser.add_argument("--ioengine", choices=["sync", "psync", "io_uring", "libaio"], default="psync")
    parser.add_argument("--iodepth", type=int, default=1)
    return parser


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"{text}: give a whole number of one or more")
    return int(text)


def _size(text: str) -> int:
    digits = text.rstrip("kKmMgGtTbBiI")
    suffix = text[len(digits) :].lower().removesuffix("b")
    if not digits.isdigit() or suffix not in _SUFFIXES:
        raise ArgumentTypeError(f"{text}: fio reads sizes such as 4k, 64m or 1g")
    return int(digits) * _SUFFIXES[suffix]


_SUFFIXES: Final = {"": 1, "k": KIB, "m": MIB, "g": GIB, "t": GIB << 10}


def fio(
    *,
    site: Site,
    spec: FioSpec,
    program_scale: float,
    start_ns: int,
    mount_of: Callable[[str], MountedSuperblock],
    writer: Callable[[Thread], BufferedWriter],
    on_end: Callable[[], None],
) -> FileWriters:
    """A running fio; it ends with its last write."""
    pages = spec.filesize // PAGE_BYTES
    jobs = []
    for number in range(spec.numjobs):
        dice = site.dice(f"job {number}")
        random = (spec.rw[number] if isinstance(spec.rw, tuple) else spec.rw) == "randwrite"
        orders = [RandomMap(dice, pages).take if random else sequential() for _ in range(spec.nrfiles)]
        jobs.append(Job(spec.directories[number % len(spec.directories)], orders, pages))
    return FileWriters(
        site=site,
        mount_of=mount_of,
        writer=writer,
        jobs=jobs,
        call_pages=1,
        app_ns=round(spec.app_time * program_scale),
        fork_ns=round(spec.fork_time * program_scale),
        lead_ns=round(spec.start_time * program_scale),
        idle_ns=spec.idle_time,
        start_ns=start_ns,
        on_end=on_end,
    )


SPEC, COMPONENT = FioSpec, fio
