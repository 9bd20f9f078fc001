"""Text of blkparse in its default format: ``%D %2c %8s %5T.%9t %5p %2a %3d`` and the action's fields.

A gap in the sequence numbers of a device on a processor is a loss of events.  Message lines have no sequence
number of their own, because the kernel leaves that field unset (trace_note, kernel/trace/blktrace.c).
Left out: the fields that an unusual ``-f`` or ``-F`` prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from wbsim.experiments.captures.events import (
    BACKMERGE,
    FRONTMERGE,
    GETRQ,
    INSERT,
    ISSUE,
    LOST,
    NO_SECTORS,
    PLUG,
    QUEUE,
    SPLIT,
    UNPLUG,
    Event,
    without_sectors,
)
from wbsim.experiments.captures.line_messages import bad_fields, refusal
from wbsim.experiments.config.problems import BadInput

_LINE: Final = re.compile(
    r"\s*(\d+,\d+)\s+(\d{1,18})\s+(-?\d{1,18})\s+\d+\.\d{9}\s+(\d{1,18})\s+([A-Z]{1,2}|m)\s+([A-Z]+(?=\s)|)\s*(.*)$"
)
_PLACE: Final = re.compile(r"(?:(\d{1,18}) [+/] (\d{1,18}) )?(?:\( *\d+\) )?\[.*\]$")
"""The sector, the sectors and, with ``-t``, the elapsed time; an empty flush has only the task."""
_PACKET: Final = re.compile(r"\d{1,18} (?:\([0-9a-f .]*\) )?\[.*\]$")
"""The bytes of a packet command, and the command itself if the driver gave it (``dump_pdu``)."""
_COUNT: Final = re.compile(r"\[.*\] (\d{1,18})$")
_REMARKED: Final = re.compile(r"(?:\d{1,18} (?:[+/] \d{1,18} )?)?(?:\( *[0-9a-f .]*\) )?\[[^\]]*\](.+)")
_REMARKED_COUNT: Final = re.compile(r"\[[^\]]*\] \d{1,18}(.+)")
"""The fields of a complete line, and the text behind them."""
_REMAPPED_FROM: Final = re.compile(r"\d+ \+ \d+ <- \((\d+,\d+)\)")
_SUMMARY: Final = re.compile(r"(?:\^C)?(?:(?:CPU\d+|Total|Events) \(|Throughput \(R/W\):|Skips: )")
_PROCESS: Final = re.compile(r"(?:\^C)?\S.* \(\d+(?:, \.\.\.)?\)$")
"""The first line of a process in the summary of ``-s``; the next line counts its reads."""
_READS: Final = " Reads Queued:"
_NOTE: Final = re.compile(
    r"Input file .* added$|\(\d+,\d+\): skipping |sector alias |(?:merge|issue|complete) not found for \("
)
"""Remarks of blkparse about its input, which ``2>&1`` puts before or between the events."""
_NAMES: Final = {
    "Q": QUEUE, "G": GETRQ, "M": BACKMERGE, "F": FRONTMERGE, "X": SPLIT, "I": INSERT, "D": ISSUE,
}  # fmt: skip


def is_blkparse(line: str) -> bool:
    """Return whether *line* can be a line of blkparse's text: an event, a message or a remark on its input.

    `reader` asks this of the first lines, to choose the parser.
    """
    return _LINE.match(line.rstrip()) is not None or _NOTE.match(line) is not None


def parse(lines: Iterator[tuple[int, str]], wrong: Callable[[int, str], BadInput]) -> Iterator[Event]:
    """Yield the block layer's events, in the text's order, up to the summary; `reader` calls it.

    *lines*: pairs of a number, from 1, and its line.  *wrong* makes the error for a line from its number and
    a message.  A gap in the sequence numbers yields a `LOST` event.  Comments and other actions yield
    nothing.

    Raises:
        BadInput: a line is no event of the default format, an event lacks its fields, or an event follows the
            summary.
    """
    sequences = _Sequences()
    summary = False
    for number, line in lines:
        match = _LINE.match(line.rstrip())
        if match is None:
            if not line.strip() or line.startswith("#") or _NOTE.match(line):
                continue
            summary = summary or _begins_summary(line, lines)
            if not summary:
                raise wrong(number, refusal("blkparse's default format", line))
            continue
        if summary:
            raise wrong(number, "is an event after the summary; give the output of a single run of blkparse")
        device, cpu, sequence, pid, action, rwbs, rest = match.groups()
        if action == "m":
            continue
        gap = sequences.lost_before(int(sequence), device, cpu, rest if action == "A" else "")
        if gap > 0:
            yield Event(number, 0, int(cpu), LOST, size=gap)
        name = _NAMES.get(action)
        if name is not None:
            if _PACKET.match(rest):
                yield Event(number, int(pid), int(cpu), NO_SECTORS, device, rwbs)
                continue
            place = _PLACE.match(rest)
            if place is None:
                raise wrong(number, bad_fields(action, "place", rest, _REMARKED, "sector + sectors [task]"))
            event = Event(
                number, int(pid), int(cpu), name, device, rwbs, int(place[1] or 0), int(place[2] or 0)
            )
            yield event if event.size else without_sectors(event)
        elif action == "P":
            yield Event(number, int(pid), int(cpu), PLUG, device)
        elif action in ("U", "UT"):
            count = _COUNT.match(rest)
            if count is None:
                raise wrong(number, bad_fields(action, "count", rest, _REMARKED_COUNT, "[task] 1"))
            yield Event(number, int(pid), int(cpu), UNPLUG, device, size=int(count[1]), asleep=action == "UT")


def _begins_summary(line: str, lines: Iterator[tuple[int, str]]) -> bool:
    """Return whether the summary begins with *line*; this may consume one of the *lines* that follow."""
    if _SUMMARY.match(line):
        return True
    return _PROCESS.match(line.rstrip()) is not None and next(lines, (0, ""))[1].startswith(_READS)


class _Sequences:
    """The next sequence number of each traced device on each processor."""

    def __init__(self) -> None:
        self._next: dict[tuple[str, str], int] = {}

    def lost_before(self, sequence: int, device: str, cpu: str, remap: str) -> int:
        """Return the number of events that are missing before *sequence*; 0 or less: none.

        *remap*: the fields of a remap, else empty.  blkparse prints a remap with the device that the bio goes
        to, even if the traced device is the partition that the bio comes from.
        """
        stream = device, cpu
        origin = _REMAPPED_FROM.match(remap)
        if origin is not None and self._next.get(stream) != sequence:
            source = origin[1], cpu
            if self._next.get(source) == sequence or stream not in self._next:
                stream = source
            if stream not in self._next:
                return 0
        gap = sequence - self._next.get(stream, sequence)
        self._next[stream] = sequence + 1
        return gap
