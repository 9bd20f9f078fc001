"""The text that /sys/kernel/tracing/trace gives.

``TASK-PID [CPU] FLAGS TIMESTAMP: event: fields``; other tracers' events are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from wbsim.experiments.captures.events import (
    BACKMERGE,
    FRONTMERGE,
    GETRQ,
    INSERT,
    ISSUE,
    LOST,
    PLUG,
    QUEUE,
    RQ_MERGE,
    SPLIT,
    UNPLUG,
    Event,
)
from wbsim.experiments.config.problems import BadInput

_LINE = re.compile(
    r"\s*(?:.{1,16}?)-(\d{1,18})\s+(?:\([\s\d-]+\)\s+)?\[(\d{1,18})\]\s+(?:[^\s:]{4,9}\s+)?[\d.]+: "
    r"(?:(\w+): ?(.*)|.*)\n?$"
)
_BIO = re.compile(r"(\d+,\d+) (\w+) (\d{1,18}) [+/] (\d{1,18}) \[.*\]$")
_REQUEST = re.compile(r"(\d+,\d+) (\w+) .*?\) (\d{1,18}) \+ (\d{1,18}) .*\]$")
_UNPLUG = re.compile(r"\[.*\] (\d{1,18})$")
LOST_LINE = re.compile(r"CPU:(\d{1,18}) \[LOST (?:(\d{1,18}) )?EVENTS\]")
_WRITTEN = re.compile(r"#\s+entries-in-buffer/entries-written: (\d{1,18})/(\d{1,18})")
_BIOS = frozenset((QUEUE, GETRQ, BACKMERGE, FRONTMERGE, SPLIT))
_REQUESTS = frozenset((INSERT, ISSUE, RQ_MERGE))


def is_ftrace(line: str) -> bool:
    """Whether *line* can stand in such a text."""
    return line.startswith("# tracer:") or _LINE.match(line) is not None or LOST_LINE.match(line) is not None


def parse(lines: Iterator[tuple[int, str]], wrong: Callable[[int, str], BadInput]) -> Iterator[Event]:
    """The block layer's events, in the text's order.

    Raises:
        BadInput: a line is neither an event nor a comment, or an event lacks its fields.
    """
    match = _LINE.match
    for number, line in lines:
        found = match(line)
        if found is None:
            if not line.strip():
                continue
            yield from _other(number, line, wrong)
            continue
        pid, cpu, name, fields = found.groups()
        if name in _BIOS:
            bio = _BIO.match(fields)
            if bio is None:
                raise wrong(number, f"{name} without its fields; expected 7,0 W 1053824 + 8 [task]")
            device, rwbs, sector, size = bio.groups()
            yield Event(number, int(pid), int(cpu), name, device, rwbs, int(sector), int(size))
        elif name in _REQUESTS:
            request = _REQUEST.match(fields)
            if request is None:
                raise wrong(
                    number, f"{name} without its fields; expected 7,0 W 12288 () 536 + 24 be,0,4 [task]"
                )
            device, rwbs, sector, size = request.groups()
            yield Event(number, int(pid), int(cpu), name, device, rwbs, int(sector), int(size))
        elif name == PLUG:
            yield Event(number, int(pid), int(cpu), name)
        elif name == UNPLUG:
            count = _UNPLUG.match(fields)
            if count is None:
                raise wrong(number, f"{name} without its count; expected [task] 1")
            yield Event(number, int(pid), int(cpu), name, size=int(count[1]))


def _other(number: int, line: str, wrong: Callable[[int, str], BadInput]) -> Iterator[Event]:
    """A comment, or lost events."""
    lost = LOST_LINE.match(line)
    if lost is not None:
        yield Event(number, 0, int(lost[1]), LOST, size=int(lost[2] or 0))
        return
    if not line.startswith("#"):
        raise wrong(
            number, "is no line of an ftrace text; expected TASK-PID [CPU] FLAGS TIMESTAMP: event: fields"
        )
    written = _WRITTEN.match(line)
    if written is not None and int(written[1]) < int(written[2]):
        yield Event(number, 0, 0, LOST, size=int(written[2]) - int(written[1]))
