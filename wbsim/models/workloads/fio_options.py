"""The options of fio's jobs: which are modelled, which have no effect here, and which are refused, and why.

Numbers are read as fio's parse.c reads them, with kb_base 1024: ``4k`` and ``4kb`` are 4096 B, and ``4kib``
is 4000 B.  Of a list such as ``4k,8k``, which is for reads and writes, the value for writes counts.  Times
are read in the unit of their option.  fio drops what follows a point in a number; here it is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, Final, NamedTuple

from wbsim.models.workloads import real_options
from wbsim.models.workloads.command_line import MOST_DIGITS, CommandError, Options, shell_syntax
from wbsim.models.workloads.fio_sections import (
    FLAGS,
    NO_CHANGES,
    OF_THE_REPORT,
    Changes,
    Given,
    Section,
    sections_of,
)
from wbsim.sim.param import Inputs
from wbsim.sim.units import MS, PAGE_BYTES, US, S


class Job(NamedTuple):
    """A job of a section.

    * ``options``: its options by name.
    * ``dropped``: those without effect here.
    * ``places``: the place of each option that was given (see `Given`).
    """

    options: Inputs
    dropped: list[str]
    places: Mapping[str, str]


def jobs_of(line: str, changes: Changes = NO_CHANGES) -> tuple[list[Inputs], list[str]]:
    """Return the jobs that a fio command *line* asks for, each with all of its options, and what was dropped.

    What was dropped are options without effect here.  *changes* are those of a configuration (`Changes`).
    Options have fio's names, sizes are in bytes, and times in ns.  None: the option was not given, or sets no
    limit.  ``size`` becomes ``filesize``, and ``bsrange`` becomes ``bs`` and ``bs_max``.

    >>> (job,), dropped = jobs_of("fio --name=a --rw=write --size=4k --group_reporting")
    >>> job["filesize"], dropped
    (4096, ['group_reporting'])

    Raises:
        CommandError: the line is not a fio command, a job file cannot be read, or options stop it; then
            ``complaints`` has all of them.
    """
    sections, dropped = sections_of(line, changes)
    if not sections:
        raise CommandError("the command has no job; give --name, or a section in a job file")
    complaints: dict[str, None] = {}
    jobs = [_job_of(section, complaints) for section in sections]
    _check_names(jobs, complaints)
    if complaints:
        raise CommandError(*complaints)
    dropped += [option for job in jobs for option in job.dropped]
    return [job.options for job in jobs], list(dict.fromkeys(dropped))


def _job_of(section: Section, complaints: dict[str, None]) -> Job:
    """Return the job of a *section*; add to *complaints* what stops it."""
    options: Inputs = dict(_DEFAULTS)
    dropped = []
    places: dict[str, str] = {}
    for option in section:
        name = ALIASES.get(option.name, option.name)
        places[name] = option.place
        try:
            if name in MODELLED:
                options[name] = _value_of(option, MODELLED[name])
            elif _is_dropped(name, option.value):
                dropped.append(option.text)
            else:
                raise ValueError(_refusal(option, name))
        except ValueError as error:
            complaints[_at(option.place, f"{option.text}: {error}")] = None
            options.pop(name, None)
    for name, message in _faults_of(options, places):
        begins = places.get("name", "")
        complaints[_at(places.get(name, begins), message)] = None
    return Job(options, dropped, places)


def _at(place: str, message: str) -> str:
    return f"{place}: {message}" if place else message


def _value_of(option: Given, read: Callable[[str], Any]) -> Any:
    """Return the value of a modelled option; a flag needs none.

    Raises:
        ValueError: the value is missing, or cannot be read.
    """
    if option.value is None:
        if option.name not in FLAGS and option.name != "sync":
            raise ValueError(f"a value is missing; write {option.name}=VALUE")
        return read("1")
    return read(option.value)


def _is_dropped(name: str, value: str | None) -> bool:
    """Return whether the option has no effect here, perhaps only with this *value*."""
    if name in DROPPED or (name.startswith(_PREFIXES) and name not in REFUSED):
        return True
    return name in ONLY and (value or "1") in ONLY[name][0]


def _refusal(option: Given, name: str) -> str:
    """Return why an option that is neither modelled nor without effect stops its job."""
    if name in ONLY:
        return f"is not modelled: {ONLY[name][1]}"
    if name in REFUSED:
        return f"is not modelled: {REFUSED[name]}"
    if name in real_options.FIO:
        return "is an option of fio that is not modelled; without it the job is another experiment"
    matches = get_close_matches(option.name, [*MODELLED, *ALIASES, *DROPPED, *ONLY, *REFUSED], n=1)
    return f"fio has no such option; did you mean {matches[0]}?" if matches else "fio has no such option"


def _faults_of(options: Inputs, places: Mapping[str, str]) -> list[tuple[str, str]]:
    """Settle the options that follow from several *options* together; return what is wrong, by its option.

    *places* has the options that were given; a faulty one has no value.
    """
    faults = []
    if "rw" not in options and "rw" not in places:
        faults.append(("rw", "rw is missing, and fio's default is to read; write rw=write or rw=randwrite"))
    if options.get("filename") and options.get("nrfiles") == 1:
        options["nrfiles"] = options["filename"].count(":") + 1
    if "bsrange" in options:
        options["bs"], options["bs_max"] = options.pop("bsrange")
    size, filesize, files = options.pop("size", None), options.get("filesize"), options.get("nrfiles")
    if filesize is None and size is None and not {"size", "filesize"} & places.keys():
        faults.append(("size", "the size is missing; give size or filesize"))
    elif filesize is None and size is not None and files is not None:
        options["filesize"] = size // files
        if not options["filesize"]:
            faults.append(("size", f"size: {size} B are less than a byte for each of nrfiles; give more"))
    elif filesize is not None and files is not None and size not in (None, filesize * files):
        faults.append((
            "size",
            f"size: {size} B, but partly empty files are not modelled; give"
            f" {filesize * files} B, which is nrfiles times filesize",
        ))  # fmt: skip
    if options.get("time_based") and not options.get("runtime") and "runtime" not in places:
        faults.append(("time_based", "time_based: fio refuses it without a runtime; give runtime"))
    return faults


def _check_names(jobs: Sequence[Job], complaints: dict[str, None]) -> None:
    """Complain about a job that waits for a job that is not before it."""
    earlier: set[str] = set()
    for job in jobs:
        awaited = job.options.get("wait_for")
        if awaited and awaited not in earlier:
            message = f"wait_for={awaited}: no job before this one has the name; name an earlier job"
            complaints[_at(job.places["wait_for"], message)] = None
        earlier.add(str(job.options.get("name")))


_NUMBER: Final = re.compile(rf"([0-9]{{1,{MOST_DIGITS}}})([a-zA-Z%]*)", re.ASCII)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_TIMES: Final = {
    "us": US, "usec": US, "ms": MS, "msec": MS, "s": S, "m": 60 * S, "h": 3_600 * S, "d": 86_400 * S,
}  # fmt: skip


def _for_writes(text: str) -> str:
    """Return the part of a value for reads, writes and trims that is for writes.

    >>> _for_writes("4k,8k"), _for_writes("4k")
    ('8k', '4k')
    """
    parts = text.split(",")
    return parts[1] if len(parts) > 1 and parts[1] else parts[0]


def _size(text: str) -> int:
    """Return a size or a number of writes in fio's units (B for sizes).

    >>> _size("4k"), _size("4kb"), _size("4kib")
    (4096, 4096, 4000)

    Raises:
        ValueError: *text* is no whole number with a suffix that fio knows, or is a percentage.
    """
    text = _for_writes(text).strip()
    match = _NUMBER.fullmatch(text)
    if match is None and "." in text:
        raise ValueError("fio drops what follows the point; write a whole number, such as 1536m for 1.5g")
    suffix = match[2].lower() if match else "?"
    if suffix == "%":
        raise ValueError("is not modelled: a percentage follows a file or a disk that exists; write the size")
    power = _POWERS.get(suffix.removesuffix("ib").removesuffix("b").removesuffix("i"))
    if match is None or power is None:
        raise ValueError("is not a size for fio; write one such as 4k, 64m or 1g")
    base = 1000 if suffix.endswith("ib") else 1024  # kb_base=1024 turns the standard's units round
    return int(match[1]) * int(base**power)


def _at_least_one(text: str) -> int:
    if not (size := _size(text)):
        raise ValueError("is too small; give at least 1")
    return size


def _limit(text: str) -> int | None:
    """Return a rate (B/s, or blocks a second); None for 0, which fio takes for no limit.

    >>> _limit("10m"), _limit("0")
    (10485760, None)
    """
    return _size(text) or None


def _range(text: str) -> tuple[int, int]:
    """Return the ends (B) of a range such as 4k-64k, the smaller first.

    >>> _range("64k-4k")
    (4096, 65536)
    """
    parts = re.split("[-:]", _for_writes(text))
    if len(parts) != 2:
        raise ValueError("is not a range for fio; write one such as 4k-64k")
    low, high = sorted(_at_least_one(part) for part in parts)
    return low, high


def _time(unit: str) -> Callable[[str], int]:
    """Return a function that reads a time and returns it in ns; a number alone is in *unit*.

    >>> _time("us")("20"), _time("s")("20ms")
    (20000, 20000000)
    """

    def read(text: str) -> int:
        match = _NUMBER.fullmatch(text.strip())
        suffix = (match[2].lower() if match else "") or unit
        if match is None or suffix not in _TIMES:
            raise ValueError(
                f"is not a time for fio; write one such as 20ms or 2s; the default unit is {unit}"
            )
        return int(match[1]) * _TIMES[suffix]

    return read


def _flag(text: str) -> bool:
    if not re.fullmatch("[0-9]{1,9}", text):
        raise ValueError("is not a flag; give 0 or 1")
    return int(text) != 0


def _text(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("has no printable text; write a name")
    return text


def _paths(text: str) -> str:
    if text.startswith("/dev/"):
        raise ValueError("is not modelled: the page cache of a device without a filesystem has no model")
    syntax, remedy = shell_syntax(text, "fio")
    if syntax:
        raise ValueError(f"has {syntax!r} for a shell, and no shell reads the value; {remedy}")
    return _text(text)


def _filenames(text: str) -> str:
    """Return the paths of files; fio ends the list at an empty name."""
    names = list(takewhile(bool, _paths(text).split(":")))
    if not names:
        raise ValueError("has no name; write one, or leave the option out")
    return ":".join(names)


def _one_of(values: dict[str, Any], remedy: str = "") -> Callable[[str], Any]:
    """Return a function that reads one of the words of *values*, and returns its value."""

    def read(text: str) -> Any:
        if text not in values:
            raise ValueError(remedy or f"is no value of the option; give one of {', '.join(values)}")
        return values[text]

    return read


def _rw(text: str) -> str:
    word = text.partition(":")[0]
    if word in ("write", "randwrite") and ":" not in text:
        return word
    if word in ("read", "randread", "rw", "readwrite", "randrw"):
        raise ValueError("is not modelled, because it reads; reads of file data have no model")
    if word in ("trim", "randtrim", "trimwrite", "randtrimwrite"):
        raise ValueError("is not modelled, because it trims, which only raw devices do")
    if word in ("write", "randwrite"):
        raise ValueError("is not modelled: a number of blocks before the next random place; leave it out")
    raise ValueError("is no value of rw; give write or randwrite")


MODELLED: Final[dict[str, Callable[[str], Any]]] = {
    "name": _text,
    "rw": _rw,
    "bs": _at_least_one,
    "bsrange": _range,
    "directory": _paths,
    "filename": _filenames,
    "filename_format": _text,
    "nrfiles": _at_least_one,
    "numjobs": _at_least_one,
    "filesize": _at_least_one,
    "size": _at_least_one,
    "io_size": _at_least_one,
    "loops": _at_least_one,
    "runtime": _time("s"),
    "time_based": _flag,
    "ramp_time": _time("s"),
    "startdelay": _time("s"),
    "stonewall": _flag,
    "wait_for": _text,
    "thinktime": _time("us"),
    "thinktime_blocks": _at_least_one,
    "rate": _limit,
    "rate_iops": _limit,
    "norandommap": _flag,
    "create_on_open": _flag,
    "fallocate": _one_of({
        "native": "native", "none": "none", "posix": "native", "keep": "keep", "truncate": "truncate",
        "0": "none", "1": "native",
    }),
    "overwrite": _flag,
    "file_append": _flag,
    "fsync": _size,
    "fdatasync": _size,
    "sync": _one_of({"none": "", "0": "", "sync": "O_SYNC", "1": "O_SYNC", "dsync": "O_DSYNC"}),
    "end_fsync": _flag,
    "fsync_on_close": _flag,
    "unlink": _flag,
    "ioengine": _one_of(
        {
            **dict.fromkeys(("sync", "psync", "vsync", "pvsync", "pvsync2"), "psync"),
            "libaio": "libaio", "io_uring": "io_uring",
        },
        "is not modelled: buffered writes go through write(2), libaio or io_uring here; give psync",
    ),
    "iodepth": _at_least_one,
}  # fmt: skip
"""The options that are modelled, each with the function that reads its value."""

_DEFAULTS: Final[Inputs] = {
    "bs": PAGE_BYTES, "directory": ".", "filename": "", "filename_format": "", "nrfiles": 1, "numjobs": 1,
    "filesize": None, "fallocate": "native", "ioengine": "psync", "iodepth": 1, "thinktime": 0,
    "thinktime_blocks": 1, "startdelay": 0, "rate": None, "stonewall": False, "create_on_open": False,
    "overwrite": False, "file_append": False, "fsync": 0, "fdatasync": 0, "sync": "", "end_fsync": False,
    "fsync_on_close": False, "bs_max": None, "io_size": None, "loops": 1, "runtime": 0,
    "time_based": False, "ramp_time": 0, "wait_for": "", "rate_iops": None, "norandommap": False,
    "unlink": False,
}  # fmt: skip
"""fio's defaults."""

ALIASES: Final = {
    "readwrite": "rw", "io_limit": "io_size", "blocksize": "bs", "blocksize_range": "bsrange",
    "nr_files": "nrfiles", "timeout": "runtime", "wait_for_previous": "stonewall", "iomem": "mem",
    "ratemin": "rate_min", "ratecycle": "rate_cycle", "fileoffset": "offset", "blockalign": "ba",
    "fill_fs": "fill_device", "disable_bw": "disable_bw_measurement", "ss": "steadystate",
    "blocksize_unaligned": "bs_unaligned", "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
}  # fmt: skip
"""Other names of options."""

_PREFIXES: Final = (
    "log_", "write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "disable_", "dedupe_",
    "verify_",
)  # fmt: skip
DROPPED: Final = frozenset({
    "allow_file_create", "allow_mounted_write", "allrandrepeat", "block_error_percentiles",
    "buffer_compress_chunk", "buffer_compress_percentage", "buffer_pattern", "bwavgtime",
    "clat_percentiles", "clocksource", "continue_on_error", "create_fsync", "create_serialize",
    "dedupe_mode", "dedupe_percentage", "description", "disk_util", "do_verify", "error_dump", "eta",
    "exec_postrun", "exec_prerun", "exitall_on_error", "fadvise_hint",
    "fixedbufs", "gid", "group_reporting", "gtod_cpu", "gtod_reduce", "hugepage-size",
    "ignore_error", "invalidate", "iodepth_batch", "iodepth_batch_complete_max",
    "iodepth_batch_complete_min", "iodepth_low", "iomem_align", "iopsavgtime", "job_start_clock_id",
    "lat_percentiles", "lockmem", "mem", "mem_align", "minimal", "new_group", "nonvectored",
    "output", "output-format", "per_job_logs", "percentile_list", "random_generator", "randrepeat",
    "randseed", "refill_buffers", "registerfiles", "scramble_buffers", "significant_figures",
    "slat_percentiles", "stat_type", "std_redirect", "thread", "touch_objects", "uid",
    "unified_rw_reporting", "unit_base", "verify_dump", "verify_fatal", "write_hint", "zero_buffers",
})  # fmt: skip
"""The options that change a report, the contents of buffers, or nothing that a buffered write shows here."""

ONLY: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "direct": (("0",), "direct=1 writes around the page cache, and writeback is about the cache"),
    "buffered": (("1",), "buffered=0 writes around the page cache, and writeback is about the cache"),
    "atomic": (("0",), "atomic=1 needs O_DIRECT"),
    "verify": (("0", "none"), "it reads what was written"),
    "pre_read": (("0",), "it reads the files first"),
    "random_distribution": (("random",), "only the uniform distribution is modelled; leave it out"),
    "percentage_random": (("100",), "all or no writes are at random places; give rw=randwrite or rw=write"),
    "rate_process": (("linear",), "only a constant rate is modelled; leave it out"),
    "io_submit_mode": (("inline",), "other threads submit the writes; leave it out"),
    "kb_base": (("1024",), "sizes are read with kb_base=1024 only; leave it out and write the bytes"),
    "serialize_overlap": (("0",), "leave it out"),
    "fill_device": (("0",), "the size of each job must be given; write size"),
    "force_async": (("0",), "io_uring hands a write to a worker only if it would wait; leave it out"),
    "sqthread_poll": (("0",), "a kernel thread would submit the writes; leave it out"),
    "hipri": (("0",), "polling needs O_DIRECT; leave it out"),
    "offset": (("0",), "all writes begin at the start of a file; leave it out"),
    "offset_increment": (("0",), "all writes begin at the start of a file; leave it out"),
    "zonemode": (("none",), "zoned devices have no model"),
    "rate_ignore_thinktime": (("0",), "a pause counts in the rate; leave it out"),
    "thinktime_blocks_type": (("complete",), "pauses follow completed blocks; leave it out"),
    "thinktime_spin": (("0",), "pauses are sleeps; leave it out"),
    "thinktime_iotime": (("0",), "pauses follow a number of blocks; give thinktime_blocks"),
    "bs_unaligned": (("0",), "blocks begin at multiples of their size; leave it out"),
    "unlink_each_loop": (("0",), "files are removed at the end only; leave it out, or give unlink=1"),
    "inplace": (("0",), "leave it out"),
    "lockfile": (("none",), "locks of fio on its files have no model; leave it out"),
    "nice": (("0",), "priorities of tasks have no model; leave it out"),
    "file_service_type": (("roundrobin",), "files take turns block by block; leave it out"),
    "nowait": (("0",), "a write that would wait does wait; leave it out"),
    "uncached": (("0",), "pages stay in the cache; leave it out"),
}  # fmt: skip
"""The options that have no effect with some values, and why other values are refused."""

_READS: Final = "it is about reads, which have no model"
_PINNING: Final = "tasks choose their processors as the scheduler says; leave it out"
REFUSED: Final = {
    "exitall": "all jobs would end with the first of them; give a runtime",
    "openfiles": "all files of a job are open; leave it out",
    "verify_only": "it only reads; leave it out",
    "create_only": "it only makes the files; leave it out",
    "bssplit": "several sizes with weights; give bs or bsrange",
    "rwmixread": _READS, "rwmixwrite": _READS, "read_iolog": _READS,
    "cpus_allowed": _PINNING, "cpumask": _PINNING, "cpus_allowed_policy": _PINNING,
    "numa_cpu_nodes": _PINNING, "numa_mem_policy": _PINNING,
    "prio": "priorities of I/O have no model; leave it out",
    "prioclass": "priorities of I/O have no model; leave it out",
    "cgroup": "control groups have no model", "cgroup_weight": "control groups have no model",
    "ioscheduler": "the scheduler is a key of the machine; set machine.queue.elevator.scheduler",
    "sync_file_range": "sync_file_range(2) has no model; give fsync or fdatasync",
    "opendir": "a tree of files is not read; name the files with filename",
    "rate_min": "fio would stop at a low rate; leave it out",
    "rate_iops_min": "fio would stop at a low rate; leave it out",
    "max_latency": "fio would stop at a long write; leave it out",
    "latency_target": "fio would search for a depth; leave it out",
    "steadystate": "fio would stop at a steady rate; give runtime",
    "flow": "jobs would wait for each other's pace; leave it out",
    "number_ios": "the end follows from sizes and times; give io_size",
    "trim_percentage": "trims have no model",
    "profile": "profiles of fio are not read; write the job itself",
}  # fmt: skip
"""The options that are refused whatever their value, and why."""


def _options() -> Options:
    """Return the options of fio's jobs; one that is dropped with some values only has these."""
    with_values = [f"{name}={value}" for name, (values, _) in ONLY.items() for value in values]
    reasons = {name: why for name, (_, why) in ONLY.items()} | REFUSED
    others = real_options.FIO - {*MODELLED, *DROPPED, *reasons, *ALIASES} - OF_THE_REPORT.keys()
    rest = {name: "" for name in sorted(others) if not name.startswith(_PREFIXES)}
    return Options(
        tuple(MODELLED),
        (*sorted(DROPPED), *(f"{prefix}..." for prefix in _PREFIXES), *with_values),
        reasons | rest,
        ALIASES,
    )


OPTIONS: Final = _options()
"""All options of fio's jobs."""
