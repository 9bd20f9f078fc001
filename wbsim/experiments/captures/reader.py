"""Open a capture: the text of ftrace or blkparse, plain or packed by gz or xz."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

from wbsim.experiments.captures import blkparse, ftrace
from wbsim.experiments.captures.events import Capture, Event, Parser, header_of
from wbsim.experiments.captures.line_messages import quoted
from wbsim.experiments.config.problems import BadInput, bad
from wbsim.sim.text_files import refuse_irregular

_PACKED: Final[dict[bytes, Callable[..., IO[Any]]]] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}
_FOREIGN: Final = {
    b"\x07\x74\x61\x65": "has the binary records of blktrace; convert them to text with blkparse",
    b"\x17\x08\x44tracing": "is a trace.dat; convert it to text with trace-cmd report",
}
_LOOKED_AT: Final = 200
"""The number of lines that are searched for the first event, which shows the format."""
_LONGEST: Final = 1 << 16


def open_capture(path: Path) -> Capture:
    """Open the capture at *path*: find its format in the first 200 lines, and read its header.

    Events are read later, by `Capture.events`, which raises BadInput for a bad line.

    Raises:
        BadInput: *path* cannot be read, its header is bad, or its first lines have no event of a known
        format.
    """
    start = _start_of(path)
    for magic, remedy in _FOREIGN.items():
        if start.startswith(magic):
            raise bad(str(path), remedy)
    head = list(islice(lines_of(path), _LOOKED_AT))
    if not head:
        raise bad(f"{path}:1", "is empty; give a capture, the text of ftrace or blkparse")
    text_format, parse = _format(path, head)
    header = header_of(head[0][1], f"{path}:1")
    return Capture(path, text_format, header, partial(_events, path, parse))


def _start_of(path: Path) -> bytes:
    try:
        refuse_irregular(path)
        with path.open("rb") as file:
            return file.read(16)
    except OSError as error:
        raise bad(str(path), f"cannot be read ({error.strerror}); give the path of a capture") from None


def _format(path: Path, head: list[tuple[int, str]]) -> tuple[str, Parser]:
    for number, line in head:
        if ftrace.is_ftrace(line):
            return "ftrace", ftrace.parse
        if blkparse.is_blkparse(line):
            return "blkparse", blkparse.parse
        if line.strip() and not line.startswith("#"):
            raise bad(
                f"{path}:{number}",
                f"is neither a line of ftrace nor of blkparse's default format: {quoted(line)};"
                " give the output from its first line on, and use blkparse without -f and -F",
            )
    raise bad(
        f"{path}:{head[-1][0]}",
        f"has no event in the first {len(head)} lines; give a capture of the block events",
    )


def _events(path: Path, parse: Parser) -> Iterator[Event]:
    def wrong(number: int, message: str) -> BadInput:
        return bad(f"{path}:{number}", message)

    return parse(lines_of(path), wrong)


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line of *path*, after its number, from 1; the file may be packed by gzip or xz.

    A line keeps its line end.  Bytes that are not UTF-8 become surrogate escapes, so the parser sees and
    refuses them.

    Raises:
        BadInput: *path* cannot be read, its packed text breaks off, or a line has 65536 characters or more.
    """
    start = _start_of(path)
    opener = next((opener for magic, opener in _PACKED.items() if start.startswith(magic)), open)
    number = 0
    try:
        with opener(path, "rt", encoding="utf-8", errors="surrogateescape", newline="\n") as text:
            for number, line in enumerate(iter(partial(text.readline, _LONGEST), ""), 1):
                if len(line) == _LONGEST:
                    raise bad(
                        f"{path}:{number}",
                        f"has {_LONGEST} characters or more; give the text of ftrace or blkparse",
                    )
                yield number, line
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise bad(
            f"{path}:{number + 1}", f"the compressed text is damaged ({error}); copy the file again"
        ) from None
