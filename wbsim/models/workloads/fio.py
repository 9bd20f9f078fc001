"""fio: buffered writes, random or sequential, into files made on opening (create_on_open, no fallocate).

Jobs are processes; each has separate files in a directory.  A job takes its files in turn
(file_service_type=roundrobin).  With ``randwrite`` it writes each block once, in the order of fio's random
map.

A job begins ``startdelay`` after fio's first job could begin.  With ``stonewall``, it begins once the jobs
before it that have begun are over.  A process sleeps through its ``thinktime``; with a ``rate``, each block
waits for its time.

Left out: reads, direct I/O, fsync between writes, verify, a run that is bound by time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from wbsim.models.arrays.compiled import compiled
from wbsim.models.parts import Parts
from wbsim.models.syscalls.process import SystemCalls
from wbsim.models.syscalls.stream import Calls
from wbsim.models.workloads.command_line import CommandError, one_line
from wbsim.models.workloads.file_writers import FileWriters, Job, in_pages, sequential
from wbsim.models.workloads.fio_options import jobs_of
from wbsim.models.workloads.spec import WorkloadFactory, WorkloadSpec, Written, plain_path
from wbsim.sim.param import (
    BadValue,
    BytesOrNone,
    BytesPerS,
    Count,
    Flag,
    Inputs,
    Ns,
    Threads,
    assumed,
    measured,
)
from wbsim.sim.units import MS, PAGE_BYTES, US, S

_BITS: Final = 64
_DRAWS: Final = 4_096
"""The number of blocks that are drawn at a time."""


class RandomMap:
    """fio's random map: the order in which the *blocks* blocks of a file are written, each once.

    The map has a bit for each block.  It draws a random block or, if that was written before, takes the next
    unwritten one (get_next_rand_offset in fio's io_u.c, axmap_next_free).  So blocks cluster as a file fills
    up, as in a hash table with linear probing.
    """

    def __init__(self, random: np.random.Generator, blocks: int) -> None:
        self._random = random
        self._blocks = blocks
        self._draws = random.integers(0, blocks, 0)
        self._bitmap = np.zeros(-(-blocks // _BITS), np.int64)  # bits behind the last block count as written
        if blocks % _BITS:
            self._bitmap[-1] = np.int64(-1) << np.int64(blocks % _BITS)

    def take(self, count: int) -> NDArray[np.int64]:
        """Return the next *count* blocks, at most as many as are left."""
        while len(self._draws) < count:
            more = self._random.integers(0, self._blocks, _DRAWS)
            self._draws = np.concatenate([self._draws, more])
        draws, self._draws = self._draws[:count], self._draws[count:]
        next_free(self._bitmap, draws)
        return draws


@compiled
def next_free(bitmap: NDArray[np.int64], draws: NDArray[np.int64]) -> None:
    """Replace each of *draws* by the block that is written for it, one after another."""
    for i in range(len(draws)):
        word, bit = divmod(draws[i], _BITS)
        while bitmap[word] == -1 or (bitmap[word] >> bit) & 1:
            if bitmap[word] >> bit == -1 or bit == _BITS - 1:  # all from here on are written
                word, bit = word + 1 if word + 1 < len(bitmap) else 0, 0
            else:
                bit += 1
        bitmap[word] |= np.int64(1) << np.int64(bit)
        draws[i] = word * _BITS + bit


Rw = Literal["write", "randwrite"]
Engine = Literal["sync", "psync", "libaio", "io_uring"]
ValueT = TypeVar("ValueT")


class FioSpec(WorkloadSpec):
    """The options of fio with fio's defaults, and the times of the program itself.

    An option has one value for all jobs, or one value for each job.

    * ``directories``: the directories of the files: one for all jobs, or one for each.
    * ``names``: the names of the jobs, in their order.  fio calls a file NAME.CLONE.NUMBER, so jobs of equal
      names in different directories, and the clones of a job, have different files.  A job without a name
      writes files that no other program writes.
    * ``numjobs``: the number of jobs.
    * ``rw``: the order of the blocks: from the beginning to the end, or random.
    * ``bs``: the size of a block: whole pages of 4 KiB, or a part of a page that divides it.
    * ``nrfiles``: the number of files of a job.
    * ``filesize``: the size of a file; whole blocks and whole pages.
    * ``thinktime``: the time for which a job pauses between blocks.
    * ``thinktime_blocks``: the number of blocks between two pauses.
    * ``startdelay``: the time by which a job begins later than fio's first job could.
    * ``rate``: the rate that a job does not exceed; without it, no limit.
    * ``stonewall``: the job begins when the jobs before it that have begun are over.
    * ``end_fsync``: the job calls fsync(2) for each file at its end.
    * ``fsync_on_close``: the job calls fsync(2) when it closes a file.
    * ``ioengine``: how a job writes: with write(2), which libaio does too for buffered writes, or through
      io_uring, whose workers make the writes that would wait.
    * ``iodepth``: the writes of io_uring that may be in flight; no effect with another engine.
    * ``app_time``: the time of fio itself for each write.
    * ``fork_time``: the time of the fork of each job.
    * ``start_time``: the processor time that fio takes before its first job.
    * ``idle_time``: the time for which fio sleeps before its first job.
    * ``spin_time``: the length of a pause below which fio spins through it (usec_sleep).
    """

    programs: ClassVar = ("fio",)
    purpose: ClassVar = "writes files in any order, by several jobs"
    example: ClassVar = (
        "fio --name=a --rw=randwrite --bs=4k --filesize=64m --create_on_open=1 --fallocate=none"
        " --directory=/mnt"
    )
    costs: ClassVar = {
        "app_time": measured(300, "docs/measurements.md H: user time per write"),
        "start_time": measured(165 * MS, "docs/measurements.md H: processor time of a fio that writes 4 KiB"),
        "idle_time": measured(
            115 * MS, "docs/measurements.md H: wall time of this fio minus its processor time"
        ),
        "spin_time": assumed(
            100 * US, "docs/measurements.md I: the longest of ten nanosleeps", 60 * US, 300 * US
        ),
        "fork_time": assumed(150 * US, "as for fs_mark: fork and exit of a small process", 50 * US, 500 * US),
    }
    file_option: ClassVar = "--name or --directory"
    kind: Literal["fio"] = "fio"
    names: tuple[str, ...] = ()
    numjobs: Threads
    rw: Rw | tuple[Rw, ...]
    bs: BytesOrNone | tuple[BytesOrNone, ...] = PAGE_BYTES
    nrfiles: Count | tuple[Count, ...]
    filesize: BytesOrNone | tuple[BytesOrNone, ...]
    thinktime: Ns | tuple[Ns, ...] = 0
    thinktime_blocks: Count | tuple[Count, ...] = 1
    startdelay: Ns | tuple[Ns, ...] = 0
    rate: BytesPerS | tuple[BytesPerS | None, ...] | None = None
    stonewall: Flag | tuple[Flag, ...] = False
    end_fsync: Flag | tuple[Flag, ...] = False
    fsync_on_close: Flag | tuple[Flag, ...] = False
    ioengine: Engine | tuple[Engine, ...] = "psync"
    iodepth: Count | tuple[Count, ...] = 1
    app_time: Ns
    fork_time: Ns
    start_time: Ns
    idle_time: Ns
    spin_time: Ns

    @model_validator(mode="after")
    def _check(self) -> FioSpec:
        if len(self.directories) not in (1, self.numjobs):
            message = f"{len(self.directories)} directories for {self.numjobs} jobs; give 1 or {self.numjobs}"
            raise BadValue(message, "directories")
        for name in _OF_A_JOB:
            values = getattr(self, name)
            if isinstance(values, tuple) and len(values) != self.numjobs:
                message = f"{len(values)} values for {self.numjobs} jobs; give 1 or {self.numjobs}"
                raise BadValue(message, name)
        for number in range(self.numjobs):
            bs, filesize = self.of_job("bs", number), self.of_job("filesize", number)
            if not bs or (bs % PAGE_BYTES and PAGE_BYTES % bs):
                raise BadValue(f"{bs} B does not fit pages; give a multiple or a divisor of 4096 B", "bs")
            if not filesize or filesize % max(bs, PAGE_BYTES):
                message = f"{filesize} B is not allowed; give a multiple of {max(bs, PAGE_BYTES)} B"
                raise BadValue(message, "filesize")
        return self

    def of_job(self, option: str, number: int) -> Any:
        """Return the value of *option* for the job with this *number*."""
        value = getattr(self, option)
        return value[number] if isinstance(value, tuple) else value

    def directory_of(self, number: int) -> str:
        """Return the directory for the files of the job with this *number*."""
        return self.directories[number % len(self.directories)]

    @property
    def total_files(self) -> int:
        """Return the number of files of all jobs."""
        return sum(self.of_job("nrfiles", number) for number in range(self.numjobs))

    def makes(self) -> Iterator[tuple[str, int, int]]:
        """See `WorkloadSpec.makes`."""
        for number in range(self.numjobs):
            files, filesize = self.of_job("nrfiles", number), self.of_job("filesize", number)
            yield self.directory_of(number), files, filesize

    def writes(self) -> Iterator[Written]:
        """See `WorkloadSpec.writes`."""
        clones: Counter[str] = Counter()
        for number, name in enumerate(self.names[: self.numjobs]):
            path = plain_path(f"{self.directory_of(number)}/{name}")
            yield Written(f"{path}.{clones[path]}", range(self.of_job("nrfiles", number)))
            clones[path] += 1

    @classmethod
    def fields_of(cls, lines: Sequence[str]) -> Inputs:
        """See `WorkloadSpec.fields_of`."""
        return parse_command(one_line(lines, "fio"))


_OF_A_JOB = (
    "rw", "bs", "nrfiles", "filesize", "thinktime", "thinktime_blocks", "startdelay", "rate", "stonewall",
    "end_fsync", "fsync_on_close", "ioengine", "iodepth",
)  # fmt: skip


def parse_command(line: str) -> Inputs:
    """Return the fields of a `FioSpec` that a fio command line gives.

    Each ``--name`` is a job.  If the line names job files, each of their sections is a job.

    Raises:
        CommandError: see `models.workloads.fio_options.jobs_of`; or two jobs write the same file.
    """
    distinct = jobs_of(line)
    files = Counter(plain_path(f"{job['directory']}/{job['name']}") for job in distinct)
    if files and max(files.values()) > 1:
        path = max(files, key=lambda path: files[path])
        raise CommandError(
            f"two jobs write to the same file, {path}.0.0; give each a different --name or --directory"
        )
    jobs = [  # of the clones of a job, only the first waits for earlier jobs
        {**job, "stonewall": job["stonewall"] and not clone}
        for job in distinct
        for clone in range(job["numjobs"])
    ]
    fields: Inputs = {"kind": "fio", "numjobs": len(jobs)}
    for option in _OF_A_JOB:
        fields[option] = _one_or_each([job[option] for job in jobs])
    fields["names"] = [job["name"] for job in jobs]
    fields["directories"] = [job["directory"] for job in jobs]
    if len(set(fields["directories"])) == 1:
        del fields["directories"][1:]
    return fields


def _one_or_each(values: Sequence[ValueT]) -> ValueT | list[ValueT]:
    return values[0] if len(set(values)) == 1 else list(values)


def fio(
    *,
    parts: Parts,
    spec: FioSpec,
    program_scale: float,
    start_ns: int,
    calls: SystemCalls,
    on_end: Callable[[], None],
) -> FileWriters:
    """Return a running fio, which ends with its last write or fsync."""
    return FileWriters(
        parts=parts,
        calls=calls,
        jobs=[
            _job(parts, spec, number, round(spec.app_time * program_scale)) for number in range(spec.numjobs)
        ],
        fork_ns=round(spec.fork_time * program_scale),
        lead_ns=round(spec.start_time * program_scale),
        idle_ns=spec.idle_time,
        start_ns=start_ns,
        on_end=on_end,
    )


def _job(parts: Parts, spec: FioSpec, number: int, app_ns: int) -> Job:
    """Return the process of the job with this *number*."""
    bs, filesize, rate = (spec.of_job(option, number) for option in ("bs", "filesize", "rate"))
    numbers, blocks = parts.random(f"job {number}"), filesize // bs
    random, call_pages = spec.of_job("rw", number) == "randwrite", max(1, bs // PAGE_BYTES)
    orders = [
        in_pages(RandomMap(numbers, blocks).take if random else sequential(), call_pages)
        for _ in range(spec.of_job("nrfiles", number))
    ]
    fsyncs = spec.of_job("end_fsync", number) or spec.of_job("fsync_on_close", number)
    return Job(
        spec.directory_of(number),
        orders,
        blocks * call_pages,
        Calls(call_pages, max(1, PAGE_BYTES // bs), app_ns, random=random),
        think_ns=spec.of_job("thinktime", number),
        think_calls=spec.of_job("thinktime_blocks", number),
        period_ns=0 if rate is None else bs * S // rate,
        delay_ns=spec.of_job("startdelay", number),
        after_others=spec.of_job("stonewall", number),
        fsyncs=fsyncs,
        spin_ns=spec.spin_time,
        in_flight=spec.of_job("iodepth", number) if spec.of_job("ioengine", number) == "io_uring" else 0,
    )


SPEC = FioSpec
COMPONENT: WorkloadFactory = fio
