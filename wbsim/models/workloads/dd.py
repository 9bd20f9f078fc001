"""dd: streams of zeros into files, each a process that writes its file from beginning to end.

Left out: reading from anything but /dev/zero, oflag, and all values of conv but fsync and fdatasync.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import ClassVar, Final, Literal

from pydantic import model_validator

from wbsim.models.parts import Parts
from wbsim.models.syscalls.process import SystemCalls
from wbsim.models.syscalls.stream import Calls
from wbsim.models.workloads import real_options
from wbsim.models.workloads.command_line import CommandError, is_whole, words_of
from wbsim.models.workloads.file_writers import FileWriters, Job, sequential
from wbsim.models.workloads.spec import SHELL_FORK, WorkloadFactory, WorkloadSpec, Written, plain_path
from wbsim.sim.param import BadValue, Bytes, Count, Flag, Inputs, Ns, Threads, assumed, measured
from wbsim.sim.units import GIB, KIB, MIB, PAGE_BYTES

_READING: Final = "docs/measurements.md N: dd of /dev/zero into /dev/null"


class DdSpec(WorkloadSpec):
    """The options of dd, and the times of the program itself.

    * ``directories``: the directories of the files: one for all streams, or one for each.
    * ``names``: the names of the files in their directories, in the order of the streams.  A stream without a
      name writes a file that no other program writes.
    * ``streams``: the number of processes, which run at once and write a file each.
    * ``bs``: the size of a block: whole pages of 4 KiB, or a part of a page that divides it.
    * ``count``: the number of blocks of each stream.
    * ``fsyncs``: each stream ends with an fsync(2) (conv=fsync).
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
    fsyncs: Flag = False
    app_user_time: Ns = 0
    read_time: Ns = 0
    zero_page_time: Ns
    fork_time: Ns

    @model_validator(mode="after")
    def _check(self) -> DdSpec:
        if not self.bs or (self.bs % PAGE_BYTES and PAGE_BYTES % self.bs):
            raise BadValue(f"{self.bs} B does not fit pages; give a multiple or a divisor of 4096 B", "bs")
        if len(self.directories) not in (1, self.streams):
            message = (
                f"{len(self.directories)} directories for {self.streams} streams; give 1 or {self.streams}"
            )
            raise BadValue(message, "directories")
        if self.streams == len(self.names) != len(set(self.writes())):
            raise BadValue("two streams write to the same file; give each a different of=", "directories")
        return self

    def writes(self) -> Iterator[Written]:
        """See `WorkloadSpec.writes`."""
        for number, name in enumerate(self.names[: self.streams]):
            yield Written.file(f"{self.directories[number % len(self.directories)]}/{name}")

    @property
    def total_files(self) -> int:
        """Return the number of streams: each makes a file."""
        return self.streams

    @property
    def bytes_each(self) -> int:
        """See `WorkloadSpec.bytes_each`."""
        return self.bs * self.count

    @classmethod
    def fields_of(cls, lines: Sequence[str]) -> Inputs:
        """See `WorkloadSpec.fields_of`."""
        return parse_commands(lines)


_MODELLED: Final = ("if", "of", "bs", "count", "conv")
_SUFFIXES = {"": 1, "k": KIB, "K": KIB, "M": MIB, "G": GIB, "kB": 10**3, "MB": 10**6, "GB": 10**9}


def parse_commands(commands: Sequence[str]) -> Inputs:
    """Return the fields of a `DdSpec` from dd's command lines, one for each stream; they run at once.

    Raises:
        CommandError: a line cannot be read, the lines differ in more than the file, or a line asks for
            something that is not modelled.
    """
    read = [_operands(command) for command in commands]
    if len({options for _, options in read}) != 1:
        raise CommandError("the streams differ in bs, count or conv; give all the same")
    paths = [path for path, _ in read]
    directories = [posixpath.dirname(path) or "." for path in paths]
    if len(set(directories)) == 1:
        directories = directories[:1]
    if len(set(paths)) != len(paths):
        raise CommandError("two streams write to the same file; give each a different of=")
    (_, (bs, count, fsyncs)), *_ = read
    return {
        "kind": "dd", "streams": len(read), "directories": directories, "bs": bs, "count": count,
        "fsyncs": fsyncs, "names": [posixpath.basename(path) for path in paths],
    }  # fmt: skip


def _operands(command: str) -> tuple[str, tuple[int, int, bool]]:
    program, *words = words_of(command)
    if program != "dd":
        raise CommandError(f"{command!r} is not a dd command; write dd if=/dev/zero of=FILE bs=1024k count=N")
    operands = dict(word.partition("=")[::2] for word in words)
    for name in operands:
        if name in real_options.DD and name not in _MODELLED:
            raise CommandError(f"{name}= is not modelled; use if, of, bs, count and conv")
        if name not in real_options.DD:
            matches = get_close_matches(name, _MODELLED, n=1)
            hint = f"did you mean {matches[0]}=?" if matches else "use if, of, bs, count and conv"
            raise CommandError(f"dd has no operand {name}=; {hint}")
    if operands.get("if") != "/dev/zero" or not operands.get("of") or "count" not in operands:
        raise CommandError(f"{command!r} lacks an operand; give if=/dev/zero, of=FILE and count=N")
    conversions = set(filter(None, operands.get("conv", "").split(",")))
    if conversions - {"fsync", "fdatasync"}:
        raise CommandError(f"conv={operands['conv']} is not modelled; use fsync or fdatasync")
    bs, count = _number(operands.get("bs", "512")), _number(operands["count"])
    return plain_path(operands["of"]), (bs, count, bool(conversions))


def _number(text: str) -> int:
    digits = text.rstrip("".join(_SUFFIXES))
    if not is_whole(digits) or text[len(digits) :] not in _SUFFIXES:
        raise CommandError(f"{text!r} is not a number for dd; write one such as 4096, 1024k or 1M")
    return int(digits) * _SUFFIXES[text[len(digits) :]]


def dd(
    *,
    parts: Parts,
    spec: DdSpec,
    program_scale: float,
    start_ns: int,
    calls: SystemCalls,
    on_end: Callable[[], None],
) -> FileWriters:
    """Return the running streams.

    A stream ends when its file is written, fsynced if *spec* has ``fsyncs``, and closed.
    """
    pages, calls_a_page = max(1, spec.bs // PAGE_BYTES), max(1, PAGE_BYTES // spec.bs)
    return FileWriters(
        parts=parts,
        calls=calls,
        jobs=[
            Job(
                spec.directories[i % len(spec.directories)],
                [sequential()],
                length=pages * spec.count,  # pages, or blocks if a page has several blocks
                calls=Calls(
                    pages,
                    calls_a_page,
                    round(spec.app_user_time * program_scale),
                    round((spec.read_time + pages * spec.zero_page_time / calls_a_page) * program_scale),
                ),
                fsyncs=spec.fsyncs,
            )
            for i in range(spec.streams)
        ],
        fork_ns=round(spec.fork_time * program_scale),
        start_ns=start_ns,
        on_end=on_end,
    )


SPEC = DdSpec
COMPONENT: WorkloadFactory = dd
