"""What a capture holds: the block layer's tracepoints, line by line, and the queue's limits.

The names are the kernel's (include/trace/events/block.h), whatever text they were read from.
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
"""Not a tracepoint: any event of a request without sectors, such as a packet command or an empty flush."""


class Event(NamedTuple):
    """One line of a capture.

    ``size`` is the sectors of a bio or request, the first sector of the second part of a split,
    the requests of an unplug, or how many events were lost.  ``device`` is "major,minor"; ftrace's
    plug and unplug lines have none.  ``asleep``: an unplug on the way to sleep (blkparse only;
    None where the capture does not say).
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
    """What the letters of a bio mean: blk_fill_rwbs (kernel/trace/blktrace.c)."""

    op: str
    sync: bool
    meta: bool
    flushes: bool  # PREFLUSH or FUA: it never merges, and goes through the flush machinery


@cache
def rwbs_of(letters: str) -> Rwbs:
    """Take *letters* apart: [F for PREFLUSH] operation [F for FUA] [A] [S] [M] ..."""
    preflush = len(letters) > 1 and letters[0] == "F"
    rest = letters[1:] if preflush else letters
    op, flags = rest[:1], rest[1:]
    if op in "DZ" and flags[:1] == "E":
        op, flags = rest[:2], rest[2:]
    return Rwbs(op, "S" in flags or op in "RF", "M" in flags, preflush or op == "F" or "F" in flags)


def without_sectors(event: Event) -> Event:
    """Return the event to report for *event*, which has no sectors.

    The block layer decides on the bio of an empty flush, so the bio's events keep their names.
    All other events become `NO_SECTORS`: their requests are in no elevator and merge with nothing.
    """
    if event.name not in (INSERT, ISSUE, RQ_MERGE) and rwbs_of(event.rwbs).flushes:
        return event
    return Event(event.line, event.pid, event.cpu, NO_SECTORS, event.device, event.rwbs)


@dataclass(frozen=True)
class Header:
    """What a capture's first line says of the machine; None where it says nothing."""

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
    """Read ``# kernel 6.18.44 ... scheduler none nomerges 0 max_sectors_kb 64 ... device 7,0``.

    Raises:
        BadInput: a limit is no number, or a device is not MAJOR,MINOR.
    """
    if not line.startswith("#"):
        return Header()
    try:
        words = shlex.split(line.lstrip("# "))
    except ValueError:
        words = line.lstrip("# ").split()
    if not {"kernel", "scheduler", "device", *_NUMBERS} & set(words):
        return Header()
    given: dict[str, str] = dict(pairwise(words))
    for key in _NUMBERS:
        if key in given and not re.fullmatch("[0-9]{1,18}", given[key]):
            raise bad(place, f"{given[key]!r} is no whole number", key)
    device = given.get("device", "").replace(":", ",") or None
    if device is not None and not _DEVICE.match(device):
        raise bad(place, f"{device!r} is no device; write it as 7,0", "device")
    numbers = {key: int(given[key]) if key in given else None for key in _NUMBERS}
    return Header(given.get("kernel"), given.get("scheduler"), **numbers, device=device)


Parser = Callable[[Iterator[tuple[int, str]], Callable[[int, str], BadInput]], Iterator[Event]]
"""Turns numbered lines into events; the second argument makes the error for a line."""


@dataclass(frozen=True)
class Capture:
    """A file of events: iterate over it as often as needed."""

    path: Path
    format: str
    header: Header
    events: Callable[[], Iterator[Event]]
