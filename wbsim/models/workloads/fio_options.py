"""fio's options, on its command line and in its job files.

A job file has sections: ``[global]`` holds for the jobs below it, and each other section is a job.  An option
without a value is true; ``;`` and ``#`` begin a comment.  Sizes are read with kb_base 1024 (``4k`` is 4096
B).  Times are read in the unit of their option; fio drops their decimals, so decimals are refused here.
"""

from __future__ import annotations

import os
from argparse import SUPPRESS, ArgumentTypeError
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from wbsim.models.workloads import real_options
from wbsim.models.workloads.command_line import CommandError, CommandParser, is_whole, shell_syntax, words_of
from wbsim.sim.param import Inputs
from wbsim.sim.text_files import text_of
from wbsim.sim.units import GIB, KIB, MIB, MS, PAGE_BYTES, US, S

Words = list[str]
Section = list[tuple[str, str]]


def jobs_of(line: str) -> list[Inputs]:
    """Return the jobs that a fio command *line* asks for, each with all of its options.

    Raises:
        CommandError: the line is not a fio command, a job file cannot be read, an option is unknown, or an
            option is not modelled.
    """
    program, *words = words_of(line)
    if program.rsplit("/", 1)[-1] != "fio":
        raise CommandError(f"{line!r} is not a fio command; begin with fio")
    files = [word for word in words if not word.startswith("-")]
    if files:
        if len(files) != len(words):
            raise CommandError(
                "options next to a job file are not modelled; write them into its section [global]"
            )
        jobs = [_read(section) for name in files for section in _sections(Path(name))]
    else:
        jobs = [_settled(vars(_PARSER.parse_args(section))) for section in _by_job(words)]
    if not jobs:
        raise CommandError("the command has no job; give --name, or a section in a job file")
    return jobs


def _settled(job: Inputs) -> Inputs:
    """Return *job* with the options that follow from several options together."""
    _settle_layout(job)
    _settle_size(job)
    return job


def _settle_layout(job: Inputs) -> None:
    """Refuse files that exist before the job, and blocks that they have then: these are not modelled."""
    wrong = {}
    if (value := job.pop("create_on_open")) != "1":
        wrong["create_on_open"] = (
            f"create_on_open={value} (fio's default is 0) gives all files their size before the first write,"
            " which is not modelled; write --create_on_open=1"
        )
    if (value := job.pop("fallocate")) != "none":
        wrong["fallocate"] = (
            f"fallocate={value} (fio's default is native) gives files their blocks before the first write, so"
            " that writeback allocates nothing, which is not modelled; write --fallocate=none"
        )
    if wrong:
        raise CommandError("; and ".join(wrong.values()), next(iter(wrong)))


def _by_job(words: Sequence[str]) -> list[Words]:
    """Return, for each ``--name``, its options behind the options before the first ``--name``."""
    parts: list[Words] = [[]]
    for word in words:
        if word.startswith("--name"):
            parts.append([])
        parts[-1].append(word)
    common, *jobs = parts
    return [[*common, *job] for job in jobs]


def _read(section: Section) -> Inputs:
    """Return the options of a job; an error names the line of the faulty option."""
    words: Words = []
    for place, word in section:
        words.append(word)
        if not word.startswith("--name="):
            try:
                _PARSER.parse_args([*_COMPLETE, word])
            except CommandError as error:
                raise CommandError(f"{place}: {error}") from None
    try:
        return _settled(vars(_PARSER.parse_args(words)))
    except CommandError as error:
        of_option = f"--{error.option}="
        places = [place for place, word in section if error.option and word.startswith(of_option)]
        begins = next(place for place, word in section if word.startswith("--name="))
        raise CommandError(f"{[begins, *places][-1]}: {error}") from None


_COMPLETE: Final = ("--name=a", "--rw=write")
"""The options that every job must have."""


def _sections(path: Path) -> Iterator[Section]:
    """Yield the jobs of a job file, as the words of a command line, each with its place in the file."""
    try:
        text = text_of(path)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise CommandError(f"the job file {path} cannot be read: {why}; give a readable text file") from None
    common: Section = []
    job: Section | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in ";#":
            continue
        if line[0] == "[" and line[-1] == "]":
            if job is not None and job is not common:
                yield job
            name = line[1:-1]
            if not name.strip() or not name.isprintable():
                raise CommandError(
                    f"{path}:{number}: {line!r} has no printable job name; write one, such as [job]"
                )
            job = common if name == "global" else [*common, (f"{path}:{number}", f"--name={name}")]
        elif job is None:
            raise CommandError(f"{path}:{number}: {line!r} is before the first section; begin with [global]")
        else:
            key, equals, value = line.partition("=")
            value = os.path.expandvars(value.strip())
            syntax, remedy = shell_syntax(value, "fio") if key.strip() == "directory" else ("", "")
            if syntax:
                message = f"{value!r} has {syntax!r} for a shell, and no shell reads a job file; {remedy}"
                raise CommandError(f"{path}:{number}: {message}")
            word = f"--{key.strip()}={value}" if equals else f"--{key.strip()}"
            job.append((f"{path}:{number}", word))
    if job is not None and job is not common:
        yield job


def _settle_size(job: Inputs) -> None:
    """Set the length of each file from --size or --filesize."""
    filesize, size = job["filesize"], job.pop("size")
    if filesize is None and size is None:
        raise CommandError("the file size is missing; give --filesize or --size")
    if filesize is None:
        job["filesize"] = size // job["nrfiles"]
    elif size not in (None, filesize * job["nrfiles"]):
        raise CommandError(
            f"--size is {size} B, but partly empty files are not modelled;"
            f" give {filesize * job['nrfiles']} B, which is nrfiles times --filesize",
            "size",
        )


def _positive(text: str) -> int:
    if not is_whole(text) or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not allowed; give a whole number of at least 1")
    return int(text)


def _size(text: str) -> int:
    digits = text.rstrip("kKmMgGtTbBiI")
    suffix = text[len(digits) :].lower().removesuffix("b")
    if not is_whole(digits) or suffix not in _SIZES:
        raise ArgumentTypeError(f"{text!r} is not a size for fio; write one such as 4k, 64m or 1g")
    return int(digits) * _SIZES[suffix]


def _positive_size(text: str) -> int:
    if not (size := _size(text)):
        raise ArgumentTypeError(f"{text!r} is too small; give a size of at least one byte")
    return size


def _time(unit: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
        suffix = text[len(digits) :] or unit
        if not is_whole(digits) or suffix not in _TIMES:
            raise ArgumentTypeError(
                f"{text!r} is not a time for fio; write one such as 20ms or 2s; the default unit is {unit}"
            )
        return int(digits) * _TIMES[suffix]

    return read


_SIZES: Final = {"": 1, "k": KIB, "m": MIB, "g": GIB, "t": GIB << 10}
_TIMES: Final = {
    "us": US, "usec": US, "ms": MS, "msec": MS, "s": S, "sec": S, "m": 60 * S, "h": 3_600 * S,
    "d": 86_400 * S,
}  # fmt: skip


def _directory(text: str) -> str:
    if ":" in text:
        raise ArgumentTypeError(
            f"{text!r} is a list of directories for fio, which is not modelled; write a --name with its own"
            " --directory for each"
        )
    return text


def _flag(text: str) -> bool:
    if text not in ("", "0", "1"):
        raise ArgumentTypeError(f"{text!r} is not a flag; give 0 or 1")
    return text != "0"


_FLAG: Final[Inputs] = {
    "type": _flag, "nargs": "?", "const": True, "default": False,
}  # fmt: skip


def _parser() -> CommandParser:
    """Return the parser of fio's options.

    An option that changes the meaning accepts only what is modelled.  An option that changes only the report
    is read and dropped.
    """
    parser = CommandParser(real_options.FIO)
    add = parser.add_argument
    add("--name", required=True)
    add("--rw", "--readwrite", dest="rw", choices=["write", "randwrite"], required=True)
    add("--bs", "--blocksize", dest="bs", type=_positive_size, default=PAGE_BYTES)
    add("--directory", type=_directory, default=".")
    add("--nrfiles", type=_positive, default=1)
    add("--numjobs", type=_positive, default=1)
    add("--filesize", type=_positive_size)
    add("--size", type=_positive_size)
    add("--thinktime", type=_time("us"), default=0)
    add("--thinktime_blocks", type=_positive, default=1)
    add("--startdelay", type=_time("s"), default=0)
    add("--rate", type=_size)
    add("--stonewall", "--wait_for_previous", **_FLAG)
    add("--end_fsync", **_FLAG)
    add("--fsync_on_close", **_FLAG)
    add("--create_on_open", nargs="?", const="1", default="0")
    add("--fallocate", default="native")
    add("--direct", dest=SUPPRESS, choices=["0"])
    add("--ioengine", choices=["sync", "psync", "io_uring", "libaio"], default="psync")
    add("--iodepth", type=_positive, default=1)
    for name in ("group_reporting", "thread", "gtod_reduce"):
        add(f"--{name}", dest=SUPPRESS, nargs="?", const="1")
    return parser


_PARSER: Final = _parser()
