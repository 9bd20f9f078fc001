"""The contents of a capture: the block layer's tracepoints, line by line, and the limits of the queue.

For all formats, the names of events are those of the kernel (include/trace/events/block.h).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from wbsim.experiments.config.problems import BadInput, bad

QUEUE: Final = "block_bio_queue"
SPLIT: Final = "block_split"
GETRQ: Final = "block_getrq"
BACKMERGE: Final = "block_bio_backmerge"
FRONTMERGE: Final = "block_bio_frontmerge"
PLUG: Final = "block_plug"
UNPLUG: Final = "block_unplug"
INSERT: Final = "block_rq_insert"
ISSUE: Final = "block_rq_issue"
RQ_MERGE: Final = "block_rq_merge"
LOST: Final = "lost"
"""Not a tracepoint: the recorder dropped events here."""
NO_SECTORS: Final = "without sectors"
"""Not a tracepoint: an event of a request without sectors, such as a packet command or an empty flush."""


class Event(NamedTuple):
    """One line of a capture.

    ``size`` depends on the event:

    * bio or request: its sectors.
    * split: the first sector of the second part.
    * unplug: the number of requests.
    * lost: the number of lost events; 0: the recorder did not count them.

    ``device`` is "major,minor"; ftrace's plug and unplug lines have none.  ``asleep``: the task unplugs
    because it goes to sleep (blkparse only); None: unknown.
    """

    line: int
    pid: int
    cpu: int
    name: str
    device: str | None = None
    rwbs: str = ""
    sector: int = 0
    size: int = 0
    asleep: bool | None = None


class Rwbs(NamedTuple):
    """The meaning of the rwbs letters of a bio: blk_fill_rwbs (kernel/trace/blktrace.c).

    ``op`` is the letter of the operation, such as "W", "R" or "D"; a secure erase is "DE".  ``sync``: the bio
    is synchronous.  ``meta``: the bio has M, for metadata.  ``flushes``: it is a flush, or has PREFLUSH or
    FUA.
    """

    op: str
    sync: bool
    meta: bool
    flushes: bool  # PREFLUSH or FUA: the bio never merges, and goes through the flush machinery


@cache
def rwbs_of(letters: str) -> Rwbs:
    """Return the meaning of *letters*: [F for PREFLUSH] operation [F for FUA] [A] [S] [M] ...

    A read and a flush are synchronous also without S.

    >>> rwbs_of("WFS")
    Rwbs(op='W', sync=True, meta=False, flushes=True)
    """
    preflush = len(letters) > 1 and letters[0] == "F"
    rest = letters[1:] if preflush else letters
    op, flags = rest[:1], rest[1:]
    if op in "DZ" and flags[:1] == "E":
        op, flags = rest[:2], rest[2:]
    return Rwbs(op, "S" in flags or op in "RF", "M" in flags, preflush or op == "F" or "F" in flags)


def without_sectors(event: Event) -> Event:
    """Return *event*, which has no sectors (size 0), or a `NO_SECTORS` event in its place.

    The block layer decides on the bio of an empty flush, so the bio's events are returned unchanged.
    All other events become `NO_SECTORS`: their requests are in no elevator and merge with nothing.  Both
    parsers call this.
    """
    if event.name not in (INSERT, ISSUE, RQ_MERGE) and rwbs_of(event.rwbs).flushes:
        return event
    return Event(event.line, event.pid, event.cpu, NO_SECTORS, event.device, event.rwbs)


@dataclass(frozen=True)
class Header:
    """The values in the first line of a capture; None: not given."""

    kernel: str | None = None
    scheduler: str | None = None
    nomerges: int | None = None
    max_sectors_kb: int | None = None
    max_segments: int | None = None
    discard_max_bytes: int | None = None
    device: str | None = None


_NUMBERS: Final = ("nomerges", "max_sectors_kb", "max_segments", "discard_max_bytes")
_DEVICE: Final = re.compile(r"\d+,\d+$")


def header_of(line: str, place: str) -> Header:
    """Return the values in *line*, such as ``# kernel 6.18.44 ... scheduler none nomerges 0 ... device 7,0``.

    A line that is no such comment gives an empty `Header`.  Errors begin with *place*, the file and the line.

    Raises:
        BadInput: a limit is not a number, or a device is not MAJOR,MINOR.
    """
    if not line.startswith("#"):
        return Header()
    try:
        words = shlex.split(line.lstrip("# "))
    except ValueError:
        words = line.lstrip("# ").split()
    if not {"kernel", "scheduler", "device", *_NUMBERS} & set(words):
        return Header()
    values: dict[str, str] = dict(pairwise(words))
    for key in _NUMBERS:
        if key in values and not re.fullmatch("[0-9]{1,18}", values[key]):
            raise bad(place, f"{values[key]!r} is not a whole number; give a complete capture", key)
    device = values.get("device", "").replace(":", ",") or None
    if device is not None and not _DEVICE.match(device):
        raise bad(place, f"{device!r} is not a device; write it as MAJ,MIN, such as 7,0", "device")
    numbers = {key: int(values[key]) if key in values else None for key in _NUMBERS}
    return Header(values.get("kernel"), values.get("scheduler"), **numbers, device=device)


Parser = Callable[[Iterator[tuple[int, str]], Callable[[int, str], BadInput]], Iterator[Event]]
"""Turns numbered lines into events; the second argument returns the error for a line."""


@dataclass(frozen=True)
class Capture:
    """An open capture; each call of ``events`` reads the file from the beginning and yields its events.

    ``format`` is "ftrace" or "blkparse".
    """

    path: Path
    format: str
    header: Header
    events: Callable[[], Iterator[Event]]
