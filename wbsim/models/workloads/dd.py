"""dd: streams of zeros into files, each a process that writes its file from beginning to end.

Left out: reading from anything but /dev/zero, O_DIRECT, conversions of the data.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import ClassVar, Final, Literal

import numpy as np
from pydantic import model_validator

from wbsim.models.parts import Parts
from wbsim.models.syscalls.block_stream import Blocks
from wbsim.models.syscalls.process import SystemCalls
from wbsim.models.syscalls.stream import Calls
from wbsim.models.workloads.command_line import CommandError, Options, is_whole, words_of
from wbsim.models.workloads.file_writers import Files, FileWriters, Job, Syncs, sequential
from wbsim.models.workloads.spec import SHELL_FORK, WorkloadFactory, WorkloadSpec, plain_path
from wbsim.sim.param import (
    BadValue,
    Bytes,
    Count,
    CountOrNone,
    Flag,
    Inputs,
    Ns,
    Threads,
    assumed,
    measured,
)
from wbsim.sim.units import GIB, KIB, MIB, PAGE_BYTES

_READING: Final = "docs/measurements.md N: dd of /dev/zero into /dev/null"


class DdSpec(WorkloadSpec):
    """The options of dd, and the times of the program itself.

    * ``directories``: the directories of the files: one for all streams, or one for each.
    * ``names``: the names of the files in their directories, in the order of the streams.  Streams with one
      path write one file.  A stream without a name writes a file that no other program writes.
    * ``streams``: the number of processes, which run at once and write a file each.
    * ``bs``: the size of a block.
    * ``count``: the number of blocks of each stream.
    * ``seek``: the number of blocks that each stream skips at the start of its file.
    * ``keeps``: a file that exists keeps its pages (conv=notrunc); otherwise it keeps those that are skipped.
    * ``appends``: each block is written at the end of the file (oflag=append).
    * ``sync``: the flag with which the file is opened (oflag=sync, oflag=dsync), if any.
    * ``at_end``: the call with which each stream ends (conv=fsync, conv=fdatasync), if any.
    * ``app_user_time``: the time of dd itself for each block; 0: ``zero_page_time`` includes it.
    * ``read_time``: the time of read(2) for each block, without its pages; 0: ``zero_page_time`` includes it.
    * ``zero_page_time``: the time in which read(2) clears a page.
    * ``fork_time``: the time that the shell takes to start a stream.
    """

    programs: ClassVar = ("dd",)
    purpose: ClassVar = "writes one file from its start"
    example: ClassVar = "dd if=/dev/zero of=/mnt/x bs=1M count=1000"
    costs: ClassVar = {
        "app_user_time": measured(250, f"{_READING}; user time of dd into a file, a block of 4 KiB"),
        "read_time": assumed(
            250, f"{_READING}: part of the 450 ns of read(2) and write(2), without the page", 150, 400
        ),
        "zero_page_time": measured(115, f"{_READING}, blocks of 1 MiB"),
        "fork_time": SHELL_FORK,
    }
    file_option: ClassVar = "of="
    kind: Literal["dd"] = "dd"
    names: tuple[str, ...] = ()
    streams: Threads
    bs: Bytes
    count: Count
    seek: CountOrNone = 0
    keeps: Flag = False
    appends: Flag = False
    sync: Literal["", "O_SYNC", "O_DSYNC"] = ""
    at_end: Literal["", "fsync", "fdatasync"] = ""
    app_user_time: Ns = 0
    read_time: Ns = 0
    zero_page_time: Ns
    fork_time: Ns

    @model_validator(mode="after")
    def _check(self) -> DdSpec:
        if len(self.directories) not in (1, self.streams):
            message = (
                f"{len(self.directories)} directories for {self.streams} streams; give 1 or {self.streams}"
            )
            raise BadValue(message, "directories")
        if self.appends and self.bs % PAGE_BYTES and PAGE_BYTES % self.bs:
            raise BadValue(f"{self.bs} B that are appended must be whole pages or divide one", "bs")
        if self.seek * self.bs % PAGE_BYTES:
            message = f"{self.seek} blocks of {self.bs} B end inside a page; give a multiple of 4096 B"
            raise BadValue(message, "seek")
        return self

    def paths_of(self, number: int) -> list[str]:
        """Return a list with the path of the stream with this *number* (from 0); empty: it has no name."""
        if number >= len(self.names):
            return []
        return [plain_path(f"{self.directories[number % len(self.directories)]}/{self.names[number]}")]

    @property
    def total_files(self) -> int:
        """The number of streams: each makes or overwrites a file; one that they share counts for each."""
        return self.streams

    @property
    def bytes_each(self) -> int:
        """See `WorkloadSpec.bytes_each`."""
        return self.bs * self.count

    @classmethod
    def options(cls) -> dict[str, Options]:
        """See `WorkloadSpec.options`."""
        return {"dd": OPTIONS}

    @classmethod
    def fields_of(cls, lines: Sequence[str]) -> Inputs:
        """See `WorkloadSpec.fields_of`."""
        return parse_commands(lines)


_MODELLED: Final = ("if", "of", "bs", "obs", "count", "seek", "oseek", "conv", "oflag")
_DROPPED: Final = ("status", "iflag", "ibs")
"""The operands without effect, because /dev/zero has any number of bytes at once."""
_REFUSED: Final = {
    "skip": "it skips what is read; leave it out", "iseek": "it skips what is read; leave it out",
    "cbs": "it changes what is written; leave it out",
}  # fmt: skip
_NUMBERS: Final = ("bs", "obs", "count", "seek", "oseek")
_WORDS: Final = {
    "conv": ("fsync", "fdatasync", "notrunc", "noerror"),
    "oflag": ("append", "sync", "dsync", "nonblock", "noatime"),
    "iflag": ("fullblock",),
}  # fmt: skip
_REFUSED_WORDS: Final = {
    "direct": "it writes around the page cache, and writeback is about the cache",
    "excl": "dd would stop at a file that exists", "nocreat": "dd would stop at a file that does not exist",
    "sparse": "it leaves holes for zeros, and all data is zeros here",
}  # fmt: skip
_SUFFIXES = {
    "": 1, "c": 1, "w": 2, "b": 512, "k": KIB, "K": KIB, "KiB": KIB, "M": MIB, "MiB": MIB, "G": GIB,
    "GiB": GIB, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9,
}  # fmt: skip


OPTIONS: Final = Options(
    (
        *(f"{name}=" for name in _MODELLED if name not in _WORDS),
        *(f"{name}={word}" for name in ("conv", "oflag") for word in _WORDS[name]),
    ),
    tuple(f"{name}=" for name in _DROPPED),
    {f"{name}=": why for name, why in _REFUSED.items()} | _REFUSED_WORDS,
)
"""All operands of dd."""


MOST_BYTES: Final = 1 << 44
"""The bytes after which a dd without a count ends; the filesystem is full long before."""


def parse_commands(commands: Sequence[str]) -> Inputs:
    """Return the fields of a `DdSpec` from dd's command lines, one for each stream; they run at once.

    See `WorkloadSpec.fields_of`.  Without count=, the streams write `MOST_BYTES` each.

    >>> fields = parse_commands([f"dd if=/dev/zero of=/mnt/{name} bs=1M count=9" for name in "ab"])
    >>> fields["streams"], fields["names"], fields["directories"], fields["bs"]
    (2, ['a', 'b'], ['/mnt'], 1048576)

    Raises:
        CommandError: a line cannot be read, the lines differ in more than the file, or a line asks for
            something that is not modelled.
    """
    read = [_operands(command) for command in commands]
    if any(options != read[0][1] for _, options in read):
        raise CommandError("the streams differ in more than of=; give all the same, or a program for each")
    paths = [path for path, _ in read]
    directories = [posixpath.dirname(path) or "." for path in paths]
    if len(set(directories)) == 1:
        directories = directories[:1]
    return {
        "kind": "dd", "streams": len(read), "directories": directories, **read[0][1],
        "names": [posixpath.basename(path) for path in paths],
    }  # fmt: skip


def _operands(command: str) -> tuple[str, Inputs]:
    """Return the file of a dd *command*, and the fields that follow from its other operands."""
    program, *words = words_of(command)
    if program != "dd":
        raise CommandError(f"{command!r} is not a dd command; write dd if=/dev/zero of=FILE bs=1024k count=N")
    operands = dict(word.partition("=")[::2] for word in words)
    complaints = list(_faults_of(operands))
    if operands.get("if") != "/dev/zero" or not operands.get("of"):
        complaints.append(f"{command!r} lacks an operand; give if=/dev/zero and of=FILE")
    if complaints:
        raise CommandError(*complaints)
    conversions, flags = _words_of(operands, "conv"), _words_of(operands, "oflag")
    if "obs" in operands:
        operands["bs"] = operands["obs"]
    return plain_path(operands["of"]), {
        "ignored": [f"{name}={operands[name]}" for name in _DROPPED if name in operands],
        "bs": (bs := _number(operands.get("bs", "512"))),
        "count": _number(operands["count"]) if "count" in operands else max(1, MOST_BYTES // max(bs, 1)),
        "seek": _number(operands.get("seek", operands.get("oseek", "0"))),
        "keeps": "notrunc" in conversions,
        "appends": "append" in flags,
        "sync": "O_SYNC" if "sync" in flags else "O_DSYNC" if "dsync" in flags else "",
        "at_end": "fsync" if "fsync" in conversions else "fdatasync" if "fdatasync" in conversions else "",
    }


def _words_of(operands: Mapping[str, str], name: str) -> set[str]:
    """Return the comma-separated values of the operand *name*.

    >>> sorted(_words_of({"conv": "fsync,notrunc"}, "conv"))
    ['fsync', 'notrunc']
    """
    return set(filter(None, operands.get(name, "").split(",")))


def _faults_of(operands: Mapping[str, str]) -> Iterator[str]:
    """Yield what is no operand of dd, and what is not modelled."""
    for name, value in operands.items():
        if name in _REFUSED:
            yield f"{name}={value} is not modelled: {_REFUSED[name]}"
        elif name not in (*_MODELLED, *_DROPPED):
            matches = get_close_matches(name, [*_MODELLED, *_DROPPED], n=1)
            hint = f"did you mean {matches[0]}=?" if matches else f"use {', '.join(_MODELLED)}"
            yield f"dd has no operand {name}=; {hint}"
        if name in _NUMBERS:
            try:
                _number(value)
            except CommandError as error:
                yield str(error)
    for name, modelled in _WORDS.items():
        for word in sorted(_words_of(operands, name).difference(modelled)):
            if reason := _REFUSED_WORDS.get(word):
                yield f"{name}={word} is not modelled: {reason}"
            else:
                yield f"{name}={word} is not modelled; use {', '.join(modelled)}, or leave it out"


def _number(text: str) -> int:
    """Return a number of dd: factors with a suffix each, and an x between them.

    >>> _number("4k"), _number("2x1MB")
    (4096, 2000000)
    """
    product = 1
    for factor in text.split("x"):
        digits = factor.rstrip("".join(_SUFFIXES))
        if not is_whole(digits) or factor[len(digits) :] not in _SUFFIXES:
            raise CommandError(f"{text!r} is not a number for dd; write one such as 4096, 1024k or 1M")
        product *= int(digits) * _SUFFIXES[factor[len(digits) :]]
    return product


def dd(
    *,
    parts: Parts,
    spec: DdSpec,
    program_scale: float,
    start_ns: int,
    calls: SystemCalls,
    on_end: Callable[[], None],
) -> FileWriters:
    """Return the running streams, which begin at *start_ns*; *on_end* is called when the last one ends.

    A stream ends when its file is written, synced if *spec* says so, and closed.  *parts* makes the threads
    of the streams, and *calls* their system calls.  *program_scale*: the factor on the program's own times.
    """
    fits = not (spec.bs % PAGE_BYTES and PAGE_BYTES % spec.bs)
    pages, calls_a_page = (max(1, spec.bs // PAGE_BYTES), max(1, PAGE_BYTES // spec.bs)) if fits else (1, 1)
    clear_ns = spec.zero_page_time * spec.bs / PAGE_BYTES

    def blocks() -> list[Blocks]:
        places = (spec.seek + np.arange(spec.count)) * spec.bs
        return [Blocks(places, np.full(spec.count, spec.bs))]

    return FileWriters(
        parts=parts,
        calls=calls,
        jobs=[
            Job(
                spec.directories[i % len(spec.directories)],
                1,
                lambda: [sequential(spec.seek * pages)],
                length=pages * spec.count,  # pages, or blocks if a page has several blocks or a part of one
                blocks=None if fits else blocks,
                calls=Calls(
                    pages,
                    calls_a_page,
                    round(spec.app_user_time * program_scale),
                    round((spec.read_time + clear_ns) * program_scale),
                    appends=spec.appends,
                    sync=spec.sync,
                ),
                files=Files(spec.paths_of(i), cut_at=-1 if spec.keeps else spec.seek * spec.bs // PAGE_BYTES),
                syncs=Syncs(at_end=spec.at_end),
            )
            for i in range(spec.streams)
        ],
        fork_ns=round(spec.fork_time * program_scale),
        start_ns=start_ns,
        on_end=on_end,
    )


SPEC = DdSpec
COMPONENT: WorkloadFactory = dd
