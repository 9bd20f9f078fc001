"""mv, rm, truncate and fallocate of files: processes that make one system call for each file.

A file that has the path of another one replaces it, as with mv -f.  Left out: directories, and mv to another
filesystem, which copies.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final, Literal

from pydantic import model_validator

from wbsim.models.parts import Parts
from wbsim.models.syscalls.process import Process, SystemCalls
from wbsim.models.workloads import real_options
from wbsim.models.workloads.command_line import (
    CommandError,
    CommandParser,
    Options,
    one_line,
    options_of,
    words_of,
)
from wbsim.models.workloads.program import Program
from wbsim.models.workloads.sizes import bytes_of_gnu_size
from wbsim.models.workloads.spec import (
    SHELL_FORK,
    Iteration,
    WorkloadFactory,
    WorkloadSpec,
    plain_path,
)
from wbsim.sim.engine import Steps
from wbsim.sim.param import BadValue, BytesOrNone, Flag, Inputs, Ns
from wbsim.sim.units import PAGE_BYTES

_HELP: Final = "help version"
Call = Literal["rename", "unlink", "ftruncate", "fallocate"]


class OneCallSpec(WorkloadSpec):
    """A command that makes one system call for each of its files.

    * ``directories``: the directories of the files.
    * ``call``: the system call.
    * ``paths``: the files, one after another.
    * ``new_path``: the path that rename(2) gives the only file.
    * ``size``: the size of each file after ftruncate(2), or the length of fallocate(2); whole pages.
    * ``keeps_size``: fallocate(2) does not make the file longer (-n).
    * ``fork_time``: the time that the shell takes to start the command.
    """

    programs: ClassVar = ("mv", "truncate", "fallocate", "unlink")
    purpose: ClassVar = "renames a file over another one, or changes its blocks"
    example: ClassVar = "mv /mnt/new /mnt/old"
    costs: ClassVar = {"fork_time": SHELL_FORK}
    kind: Literal["one_call"] = "one_call"
    call: Call
    paths: tuple[str, ...]
    new_path: str = ""
    size: BytesOrNone = 0
    keeps_size: Flag = False
    fork_time: Ns

    @model_validator(mode="after")
    def _check(self) -> OneCallSpec:
        if self.size % PAGE_BYTES:
            raise BadValue(f"{self.size} B end inside a page; give a multiple of {PAGE_BYTES} B", "size")
        if self.call == "rename" and (len(self.paths) != 1 or not self.new_path):
            raise BadValue("a rename needs one file and its new path", "paths")
        return self

    @property
    def total_files(self) -> int:
        """Zero: the command makes no files with data."""
        return 0

    @property
    def bytes_each(self) -> int:
        """Zero: the command writes no data."""
        return 0

    def makes(self) -> Iterator[tuple[str, int, int]]:
        """See `WorkloadSpec.makes`: the command makes no files with data at its paths."""
        for path in (*self.paths, *filter(None, [self.new_path])):
            yield path, 0, 0

    @classmethod
    def options(cls) -> dict[str, Options]:
        """See `WorkloadSpec.options`."""
        return {
            "mv": options_of(("-f", "--force", "-T", "--no-target-directory"), real_options.MV, (), _HELP),
            "truncate": options_of(("-s", "--size"), real_options.TRUNCATE, (), _HELP),
            "fallocate": options_of(
                ("-l", "--length", "-n", "--keep-size"), real_options.FALLOCATE, (), f"{_HELP} h V"
            ),
            "unlink": Options(()),
        }

    @classmethod
    def fields_of(cls, lines: Sequence[str]) -> Inputs:
        """See `WorkloadSpec.fields_of`."""
        return parse_command(one_line(lines, "mv"))


def parse_command(line: str) -> Inputs:
    """Return the fields of a `OneCallSpec` that a command line of mv, unlink, truncate or fallocate gives.

    See `WorkloadSpec.fields_of`; only truncate and fallocate have ``size`` (bytes) and ``keeps_size``.

    >>> parse_command("fallocate -l 1M /mnt/f")["size"], parse_command("mv /mnt/a /mnt/b")["new_path"]
    (1048576, '/mnt/b')

    Raises:
        CommandError: the line cannot be read, or asks for something that is not modelled.
    """
    program, *words = words_of(line)
    name = posixpath.basename(program)
    options = vars(_PARSERS[name]().parse_args(words))
    paths = [plain_path(path) for path in options["paths"]]
    if name == "mv":
        if len(paths) != 2:
            raise CommandError(f"{line!r} is not modelled; write mv FILE NEW, for each file")
        return fields_of_call("rename", paths[:1], new_path=paths[1])
    if name == "unlink":
        return fields_of_call("unlink", paths)
    call: Call = "ftruncate" if name == "truncate" else "fallocate"
    size = bytes_of_gnu_size(options["size"])
    return fields_of_call(call, paths, size=size, keeps_size=options.get("keeps_size", False))


def fields_of_call(call: Call, paths: Sequence[str], **more: object) -> Inputs:
    """Return the fields of a `OneCallSpec` that makes *call* for each of *paths*, without its costs.

    They are ``kind``, ``call``, ``paths``, ``directories`` (those of *paths*), and *more*, such as ``size``
    (bytes).
    """
    directories = list(dict.fromkeys(posixpath.dirname(path) or "." for path in paths))
    return {"kind": "one_call", "call": call, "paths": list(paths), "directories": directories, **more}


def _mv() -> CommandParser:
    parser = CommandParser(real_options.MV)
    parser.add_argument("-f", "--force", action="store_true")
    parser.add_argument("-T", "--no-target-directory", action="store_true")
    parser.add_argument("paths", nargs="+")
    return parser


def _unlink() -> CommandParser:
    parser = CommandParser()
    parser.add_argument("paths", nargs=1)
    return parser


def _truncate() -> CommandParser:
    parser = CommandParser(real_options.TRUNCATE)
    parser.add_argument("-s", "--size", dest="size", required=True)
    parser.add_argument("paths", nargs="+")
    return parser


def _fallocate() -> CommandParser:
    parser = CommandParser(real_options.FALLOCATE)
    parser.add_argument("-l", "--length", dest="size", required=True)
    parser.add_argument("-n", "--keep-size", dest="keeps_size", action="store_true")
    parser.add_argument("paths", nargs=1)
    return parser


_PARSERS: Final[dict[str, Callable[[], CommandParser]]] = {
    "mv": _mv, "unlink": _unlink, "truncate": _truncate, "fallocate": _fallocate,
}  # fmt: skip


class OneCallProcess(Program):
    """The running command; ``on_iteration`` is called at its end."""

    def __init__(
        self,
        *,
        parts: Parts,
        spec: OneCallSpec,
        program_scale: float,
        start_ns: int,
        calls: SystemCalls,
        on_end: Callable[[], None],
    ) -> None:
        super().__init__(parts, calls, 1, on_end)
        self._env = parts.env
        self._spec = spec
        self._pages = spec.size // PAGE_BYTES
        self._is_over = False
        fork_ns = round(spec.fork_time * program_scale)
        parts.begin(self.family.parent.task, self._run(fork_ns), start_ns)

    @property
    def share_done(self) -> float:
        """The share of the work that is done (0 or 1)."""
        return float(self._is_over)

    def _run(self, fork_ns: int) -> Steps:
        family = self.family
        (child,) = family.children
        yield from family.fork(child, self._process(child), fork_ns)
        yield from family.wait()
        self._is_over = True
        self.on_iteration(Iteration(0, 0.0, 0, self._env.now))
        self.on_end()

    def _process(self, process: Process) -> Steps:
        spec = self._spec
        for path in spec.paths:
            if spec.call == "rename":
                yield from process.rename(path, spec.new_path)
            elif spec.call == "unlink":
                yield from process.unlink_file(path)
            else:
                yield from self._resize(process, path)

    def _resize(self, process: Process, path: str) -> Steps:
        """Open the file at *path*, which is made if there is none, and change its size or its blocks."""
        inode = yield from process.open(path)
        if self._spec.call == "ftruncate":
            yield from process.ftruncate(inode, self._pages)
        else:
            yield from process.fallocate(inode, self._pages, self._spec.keeps_size)
        if (ready := process.close(inode)) is not None:
            yield ready


SPEC = OneCallSpec
COMPONENT: WorkloadFactory = OneCallProcess
