"""fio: buffered writes, random or sequential, into new files or over files that exist.

Jobs are processes; each has files in a directory, and jobs with one ``filename`` share a file.  A job takes
its files in turn (file_service_type=roundrobin).  With ``randwrite`` it writes each block once, in the order
of fio's random map.

Before the first job begins, fio makes the files that do not exist, or are too short, and has their blocks
allocated (setup_files).  With ``overwrite`` it writes them first; here they are laid out before the run.

A job begins ``startdelay`` after fio's first job could begin.  With ``stonewall``, it begins once the jobs
before it that have begun are over.  A process sleeps through its ``thinktime``; with a ``rate``, each block
waits for its time.

Left out: reads, direct I/O, verify.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from wbsim.models.arrays.compiled import compiled
from wbsim.models.parts import Parts
from wbsim.models.syscalls.block_stream import Blocks
from wbsim.models.syscalls.process import SystemCalls
from wbsim.models.syscalls.stream import Calls, Order
from wbsim.models.workloads.command_line import Options, one_line
from wbsim.models.workloads.file_writers import (
    Bounds,
    Files,
    FileWriters,
    Job,
    Syncs,
    in_pages,
    sequential,
)
from wbsim.models.workloads.fio_options import OPTIONS, jobs_of
from wbsim.models.workloads.fio_sections import NO_CHANGES, Changes
from wbsim.models.workloads.spec import WorkloadFactory, WorkloadSpec, plain_path
from wbsim.sim.param import (
    BadValue,
    Bytes,
    BytesOrNone,
    BytesPerS,
    Count,
    CountOrNone,
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
        """Return the numbers of the next *count* blocks, which are written then; as many must be left."""
        while len(self._draws) < count:
            more = self._random.integers(0, self._blocks, _DRAWS)
            self._draws = np.concatenate([self._draws, more])
        draws, self._draws = self._draws[:count], self._draws[count:]
        next_free(self._bitmap, draws)
        return draws


@compiled
def next_free(bitmap: NDArray[np.int64], draws: NDArray[np.int64]) -> None:
    """Replace each of *draws*, block numbers, by the block that is written for it, one after another.

    *bitmap* has a bit for each block, which is set here when the block is written.  A block that was written
    before gives way to the next one that was not; the first follows the last.  Enough must be unwritten.
    """
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
Fallocate = Literal["none", "native", "keep", "truncate"]
SyncFlag = Literal["", "O_SYNC", "O_DSYNC"]
ValueT = TypeVar("ValueT")


class FioSpec(WorkloadSpec):
    """The options of fio with fio's defaults, and the times of the program itself.

    An option has one value for all jobs, or one value for each job.

    * ``directories``: the directories of the files: one for all jobs, or one for each.  A file name that is
      absolute has none.
    * ``names``: the names of the jobs, in their order.  fio calls a file NAME.CLONE.NUMBER, so jobs of equal
      names in different directories, and the clones of a job, have different files.  If all jobs have one
      name, it is that of more jobs, too.  A job without a name writes files that no other program writes.
    * ``filename``: the names of the files of a job in its directory, with colons between them; "": those that
      follow from its name.
    * ``filename_format``: the format of these, with $jobname, $jobnum and $filenum.
    * ``numjobs``: the number of jobs.
    * ``rw``: the order of the blocks: from the beginning to the end, or random.
    * ``bs``: the size of a block or, with ``bs_max``, the smallest of several sizes.
    * ``bs_max``: the largest size (bsrange).  The sizes are multiples of ``bs``, each as likely as any other.
    * ``nrfiles``: the number of files of a job.
    * ``filesize``: the size of a file.  A part of a block at its end is not written.
    * ``io_size``: the bytes that a job writes, in as many passes over its files as that takes; without it,
      those of its files.
    * ``loops``: the number of times that a job writes its files.
    * ``runtime``: the time after which a job ends at the latest, from the end of ``ramp_time`` on; 0: none.
    * ``ramp_time``: the time that a job writes before its ``runtime`` begins.
    * ``time_based``: the job writes its files again until then, whatever ``io_size`` is.
    * ``norandommap``: a random block may be one that was written before.
    * ``thinktime``: the time for which a job pauses between blocks.
    * ``thinktime_blocks``: the number of blocks between two pauses.
    * ``startdelay``: the time by which a job begins later than fio's first job could.
    * ``rate``: the rate that a job does not exceed; without it, no limit.
    * ``rate_iops``: the same in blocks a second.
    * ``stonewall``: the job begins when the jobs before it that have begun are over.
    * ``wait_for``: the name of the job at whose end the job begins; "": none.
    * ``unlink``: the job removes its files at its end.
    * ``create_on_open``: each job makes its files when it opens them, and not before the first job begins.
    * ``fallocate``: what new files get before the first job begins.  ``native``: a size, and its blocks.
      ``keep``: the same blocks, and no size.  ``truncate``: a size without blocks.  ``none``: nothing.
    * ``overwrite``: the files have their blocks and their data before the run.
    * ``file_append``: the job writes behind the end that its files have when it begins.
    * ``fsync``: the number of writes between two calls of fsync(2); 0: no calls.
    * ``fdatasync``: the same for fdatasync(2).
    * ``sync``: the flag with which files are opened, if any.
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
    filename: str | tuple[str, ...] = ""
    filename_format: str | tuple[str, ...] = ""
    numjobs: Threads
    rw: Rw | tuple[Rw, ...]
    bs: BytesOrNone | tuple[BytesOrNone, ...] = PAGE_BYTES
    bs_max: Bytes | tuple[Bytes | None, ...] | None = None
    nrfiles: Count | tuple[Count, ...]
    filesize: BytesOrNone | tuple[BytesOrNone, ...]
    io_size: Bytes | tuple[Bytes | None, ...] | None = None
    loops: Count | tuple[Count, ...] = 1
    runtime: Ns | tuple[Ns, ...] = 0
    ramp_time: Ns | tuple[Ns, ...] = 0
    time_based: Flag | tuple[Flag, ...] = False
    norandommap: Flag | tuple[Flag, ...] = False
    thinktime: Ns | tuple[Ns, ...] = 0
    thinktime_blocks: Count | tuple[Count, ...] = 1
    startdelay: Ns | tuple[Ns, ...] = 0
    rate: BytesPerS | tuple[BytesPerS | None, ...] | None = None
    rate_iops: Count | tuple[Count | None, ...] | None = None
    stonewall: Flag | tuple[Flag, ...] = False
    wait_for: str | tuple[str, ...] = ""
    unlink: Flag | tuple[Flag, ...] = False
    create_on_open: Flag | tuple[Flag, ...] = True
    fallocate: Fallocate | tuple[Fallocate, ...] = "none"
    overwrite: Flag | tuple[Flag, ...] = False
    file_append: Flag | tuple[Flag, ...] = False
    fsync: CountOrNone | tuple[CountOrNone, ...] = 0
    fdatasync: CountOrNone | tuple[CountOrNone, ...] = 0
    sync: SyncFlag | tuple[SyncFlag, ...] = ""
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
            if self.of_job("fsync", number) and self.of_job("fdatasync", number):
                raise BadValue("fio calls fsync(2) or fdatasync(2), not both; give one of them", "fdatasync")
            names = self.of_job("filename", number).count(":") + 1
            if self.of_job("filename", number) and names != self.of_job("nrfiles", number):
                message = f"{names} names for {self.of_job('nrfiles', number)} files; give as many"
                raise BadValue(message, "filename")
            if not bs:
                raise BadValue("0 B is too small; give at least a byte", "bs")
            least = max(bs, self.of_job("bs_max", number) or 0)
            if filesize < least:
                message = f"{filesize} B are less than a block of {least} B; give at least a block"
                raise BadValue(message, "filesize")
            self._check_blocks(number)
            if self.of_job("time_based", number) and not self.of_job("runtime", number):
                raise BadValue("without a runtime the job would never end; give runtime", "time_based")
            if self.of_job("rate", number) and self.of_job("rate_iops", number):
                raise BadValue("a job has one rate; give rate or rate_iops", "rate_iops")
        self._check_paths()
        return self

    def _check_paths(self) -> None:
        """Check that each job has files that exist before the run, if it overwrites them."""
        for number, paths in enumerate(self.paths()):
            if self.of_job("overwrite", number) and not paths:
                raise BadValue(f"job {number} has no name, so it has no files; give it a name", "overwrite")

    def _check_blocks(self, number: int) -> None:
        """Check that a job that appends, or has io_uring, has blocks of one size that fit into pages."""
        if self.of_job("file_append", number):
            setting = "with file_append"
        elif self.of_job("ioengine", number) == "io_uring":
            setting = "with io_uring"
        else:
            return
        if self.of_job("bs_max", number) is not None:
            raise BadValue(f"{setting} a range of sizes (bsrange) is not modelled; give bs", "bs_max")
        if self.of_job("norandommap", number):
            raise BadValue(f"{setting} norandommap is not modelled; leave it out", "norandommap")
        if not self.fits(number):
            raise BadValue(f"{setting} blocks must be whole pages or divide one", "bs")

    def fits(self, number: int) -> bool:
        """Return whether job *number* (from 0) writes by whole pages, or by parts that divide a page.

        The sizes of block and file must fit.  With ``bs_max`` or ``norandommap`` the result is always False.
        If it is False, the calls are made one at a time (`BlockStream`).
        """
        bs, filesize = self.of_job("bs", number), self.of_job("filesize", number)
        if self.of_job("bs_max", number) is not None or self.of_job("norandommap", number):
            return False
        return not ((bs % PAGE_BYTES and PAGE_BYTES % bs) or filesize % max(bs, PAGE_BYTES))

    def of_job(self, option: str, number: int) -> Any:
        """Return the value of *option*, the name of a field, for the job with this *number* (from 0)."""
        value = getattr(self, option)
        return value[number] if isinstance(value, tuple) else value

    def name_of(self, number: int) -> str:
        """Return the name of the job with this *number* (from 0); "": it has none.

        If all names are one, more jobs are its clones.
        """
        if number < len(self.names):
            return self.names[number]
        return self.names[0] if len(set(self.names)) == 1 else ""

    def directory_of(self, number: int) -> str:
        """Return the directory for the files of the job with this *number* (from 0)."""
        return self.directories[number % len(self.directories)]

    @property
    def total_files(self) -> int:
        """The number of files of all jobs; a file counts once for all loops, but for each job that has it."""
        return sum(self.of_job("nrfiles", number) for number in range(self.numjobs))

    def makes(self) -> Iterator[tuple[str, int, int]]:
        """See `WorkloadSpec.makes`."""
        for number in range(self.numjobs):
            files, filesize = self.of_job("nrfiles", number), self.of_job("filesize", number)
            yield self.directory_of(number), files, filesize

    def paths(self) -> list[list[str]]:
        """Return the paths of the files of each job, in the order of jobs.

        The list is empty for a job that has neither a name nor a ``filename``.
        """
        clones: Counter[str] = Counter()
        paths = []
        for number in range(self.numjobs):
            directory, filename = self.directory_of(number), self.of_job("filename", number)
            names = filename.split(":") if filename else []
            if name := self.name_of(number):
                path = plain_path(f"{directory}/{name}")
                clone, clones[path] = clones[path], clones[path] + 1
                if not names:
                    form = self.of_job("filename_format", number) or "$jobname.$jobnum.$filenum"
                    form = form.replace("$jobname", name).replace("$jobnum", str(clone))
                    files = range(self.of_job("nrfiles", number))
                    names = [form.replace("$filenum", str(file)) for file in files]
            paths.append([
                plain_path(name if name.startswith("/") else f"{directory}/{name}") for name in names
            ])  # fmt: skip
        return paths

    def overwrites(self) -> Iterator[tuple[str, int]]:
        """See `WorkloadSpec.overwrites`."""
        for number, paths in enumerate(self.paths()):
            if self.of_job("overwrite", number):
                yield from ((path, self.of_job("filesize", number)) for path in paths)

    @classmethod
    def options(cls) -> dict[str, Options]:
        """See `WorkloadSpec.options`."""
        return {"fio": OPTIONS}

    @classmethod
    def fields_of(cls, lines: Sequence[str], changes: Changes = NO_CHANGES) -> Inputs:
        """See `WorkloadSpec.fields_of`; *changes* are those of a configuration in the jobs of the command."""
        return parse_command(one_line(lines, "fio"), changes)


_OF_A_JOB = (
    "rw", "bs", "nrfiles", "filesize", "thinktime", "thinktime_blocks", "startdelay", "rate", "stonewall",
    "create_on_open", "fallocate", "overwrite", "file_append", "fsync", "fdatasync", "sync", "end_fsync",
    "fsync_on_close", "ioengine", "iodepth", "filename", "filename_format", "bs_max", "io_size", "loops",
    "runtime", "ramp_time", "time_based", "norandommap", "rate_iops", "wait_for", "unlink",
)  # fmt: skip


def parse_command(line: str, changes: Changes = NO_CHANGES) -> Inputs:
    """Return the fields of a `FioSpec` that a fio command line gives, with *changes* of its jobs.

    Each ``--name`` is a job.  If the line names job files, each of their sections is a job.  A field is the
    value that all jobs share, or a list with a value for each.  See `WorkloadSpec.fields_of`.

    >>> fields = parse_command("fio --name=a --rw=write --size=4m --nrfiles=2")
    >>> fields["names"], fields["filesize"], fields["fallocate"]
    (['a'], 2097152, 'native')

    Raises:
        CommandError: see `models.workloads.fio_options.jobs_of`.
    """
    distinct, dropped = jobs_of(line, changes)
    jobs = [clone for job in map(_at_its_path, distinct) for clone in _clones(job)]
    fields: Inputs = {"kind": "fio", "numjobs": len(jobs), "ignored": dropped}
    for option in _OF_A_JOB:
        fields[option] = _one_or_each([job[option] for job in jobs])
    fields["names"] = [job["name"] for job in jobs]
    fields["directories"] = [job["directory"] for job in jobs]
    if len(set(fields["directories"])) == 1:
        del fields["directories"][1:]
    return fields


def _clones(job: Inputs) -> Iterator[Inputs]:
    """Yield the processes of *job*, which take turns in its directories; only the first waits for others."""
    directories = str(job["directory"]).split(":")
    for clone in range(job["numjobs"]):
        stonewall = job["stonewall"] and not clone
        yield {**job, "stonewall": stonewall, "directory": directories[clone % len(directories)]}


def _at_its_path(job: Inputs) -> Inputs:
    """Return *job* with the directory of its file, if it names a file by its path and has no directory."""
    filename = str(job["filename"])
    if job["directory"] == "." and filename.startswith("/"):
        return {**job, "directory": posixpath.dirname(filename.partition(":")[0])}
    if filename.startswith("/"):  # fio puts the directory before any name
        names = [f"./{name}" for name in filename.split(":")]
        return {**job, "filename": ":".join(names)}
    return job


def _one_or_each(values: Sequence[ValueT]) -> ValueT | list[ValueT]:
    """Return the value that all jobs share, or the list of the values of each job.

    >>> _one_or_each([1, 1]), _one_or_each([1, 2])
    (1, [1, 2])
    """
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
    """Return a running fio, which begins at *start_ns* and ends with its last write or fsync.

    *parts* makes the threads and random numbers of the jobs of *spec*, and *calls* their system calls.
    *program_scale*: the factor on the program's own times.  *on_end* is called at the end.
    """
    paths = spec.paths()
    return FileWriters(
        parts=parts,
        calls=calls,
        jobs=[
            _job(parts, spec, number, paths[number], round(spec.app_time * program_scale))
            for number in range(spec.numjobs)
        ],
        fork_ns=round(spec.fork_time * program_scale),
        lead_ns=round(spec.start_time * program_scale),
        idle_ns=spec.idle_time,
        start_ns=start_ns,
        on_end=on_end,
    )


def _job(parts: Parts, spec: FioSpec, number: int, paths: Sequence[str], app_ns: int) -> Job:
    """Return the process of the job with this *number*, whose files have *paths*."""
    bs, filesize, rate = (spec.of_job(option, number) for option in ("bs", "filesize", "rate"))
    numbers, count, files = parts.random(f"job {number}"), filesize // bs, spec.of_job("nrfiles", number)
    fits, random = spec.fits(number), spec.of_job("rw", number) == "randwrite"
    call_pages, a_page = (max(1, bs // PAGE_BYTES), max(1, PAGE_BYTES // bs)) if fits else (1, 1)
    ends = bs, spec.of_job("bs_max", number) or bs
    maps = not spec.of_job("norandommap", number)
    rate_iops = spec.of_job("rate_iops", number)

    def orders() -> list[Order]:
        return [
            in_pages(RandomMap(numbers, count).take if random else sequential(), call_pages)
            for _ in range(files)
        ]

    def blocks() -> list[Blocks]:
        return [_blocks(numbers, filesize, *ends, random=random, maps=maps) for _ in range(files)]

    period_ns = 0 if rate is None or not fits else bs * S // rate
    awaited = spec.of_job("wait_for", number)
    appends, sync = spec.of_job("file_append", number), spec.of_job("sync", number)
    calls = Calls(call_pages, a_page, app_ns, random=random, appends=appends, sync=sync)
    prepares: Any = spec.of_job("fallocate", number)
    if spec.of_job("create_on_open", number) or appends:
        prepares = ""
    return Job(
        spec.directory_of(number),
        files,
        orders,
        count * call_pages,
        calls,
        think_ns=spec.of_job("thinktime", number),
        think_calls=spec.of_job("thinktime_blocks", number),
        period_ns=period_ns if rate_iops is None else S // rate_iops,
        rate=0 if rate is None or fits else rate,
        delay_ns=spec.of_job("startdelay", number),
        after_others=spec.of_job("stonewall", number),
        blocks=None if fits else blocks,
        bounds=_bounds_of(spec, number),
        name=spec.name_of(number),
        after=[other for other in range(number) if spec.names[other : other + 1] == (awaited,)],
        files=Files(paths, prepares=prepares, pages=-(-filesize // PAGE_BYTES)),
        syncs=_syncs_of(spec, number),
        spin_ns=spec.spin_time,
        in_flight=spec.of_job("iodepth", number) if spec.of_job("ioengine", number) == "io_uring" else 0,
    )


def _bounds_of(spec: FioSpec, number: int) -> Bounds:
    """Return the end of the writes of the job with this *number*."""
    loops, io_size = spec.of_job("loops", number), spec.of_job("io_size", number)
    only_time = spec.of_job("time_based", number)
    # do_io of fio does not look at io_size if time_based is given [M: fio 3.33 wrote 4000 KiB in 1 s at
    # 1000 calls/s with io_size=512k, and as many without it].
    most_bytes = 0 if io_size is None or only_time else io_size * loops
    return Bounds(
        loops, most_bytes, spec.of_job("runtime", number), spec.of_job("ramp_time", number), only_time
    )


def _syncs_of(spec: FioSpec, number: int) -> Syncs:
    """Return the syncs that the job with this *number* makes, and whether it removes its files."""
    fsync, fdatasync = spec.of_job("fsync", number), spec.of_job("fdatasync", number)
    at_end = spec.of_job("end_fsync", number) or spec.of_job("fsync_on_close", number)
    return Syncs(
        fsync or fdatasync, bool(fdatasync), "fsync" if at_end else "", spec.of_job("unlink", number)
    )


def _blocks(
    numbers: np.random.Generator, filesize: int, low: int, high: int, *, random: bool, maps: bool
) -> Blocks:
    """Return the blocks of a file of *filesize* bytes, whose sizes are multiples of *low* up to *high*.

    They follow each other or, with *random*, lie at random multiples of *low*: each of these once if it
    *maps* them.  A random block that is longer than *low* may cover others, too.
    """
    sizes = numbers.integers(1, high // low + 1, -(-filesize // low)) * low
    ends = np.cumsum(sizes)
    count = max(int(np.searchsorted(ends, filesize, side="right")), 1)
    sizes, ends = sizes[:count], ends[:count]
    if not random:
        return Blocks(ends - sizes, sizes)
    places = filesize // low
    blocks = RandomMap(numbers, places).take(count) if maps else numbers.integers(0, places, count)
    return Blocks(blocks * low, np.minimum(sizes, filesize - blocks * low))


SPEC = FioSpec
COMPONENT: WorkloadFactory = fio
