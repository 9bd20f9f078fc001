"""Text of ftrace events: the ``trace`` file of tracefs, ``trace-cmd report`` and ``perf script``.

A line is ``TASK-PID (TGID) [CPU] FLAGS TIMESTAMP: event: fields``.  TGID and FLAGS depend on the kernel and
its options.  trace-cmd pads the event's name; perf has a blank before the PID and the system before the name.
Events of other tracepoints are skipped.  Left out: raw fields (``trace-cmd report -R``) and call chains.
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
    PLUG,
    QUEUE,
    RQ_MERGE,
    SPLIT,
    UNPLUG,
    Event,
    without_sectors,
)
from wbsim.experiments.captures.line_messages import bad_fields, refusal
from wbsim.experiments.config.problems import BadInput

_LINE: Final = re.compile(
    r"\s*.{1,16}?(?:-|\s{1,12}(?:\d{1,18}/)?)(\d{1,18})\s+(?:\([\s\d-]+\)\s+)?\[(\d{1,18})\]\s+"
    r"(?:[^\s:]{4,9}\s+)?[\d.]+:\s+(?:\d+\s+)?(?:block:)?(?:(\w+):\s*(.*)|(.*))$"
)
_BIO: Final = re.compile(r"(\d+,\d+) (\w+) (?:(\d{1,18})|\d{19,20}) [+/] (\d{1,18}) \[.*\]$")
_REQUEST: Final = re.compile(r"(\d+,\d+) (\w+) .*?\) (?:(\d{1,18})|\d{19,20}) \+ (\d{1,18}) .*\]$")
"""A flush of older kernels has sector -1, printed without sign in 20 digits."""
_UNPLUG: Final = re.compile(r"\[.*\] (\d{1,18})$")
_REMARKED: Final = {
    _BIO: re.compile(r"\d+,\d+ \w+ \d{1,20} [+/] \d{1,18} \[[^\]]*\](.+)"),
    _REQUEST: re.compile(r"\d+,\d+ \w+ .*?\) \d{1,20} \+ \d{1,18} [^\]]*\](.+)"),
    _UNPLUG: re.compile(r"\[[^\]]*\] \d{1,18}(.+)"),
}
"""For each form of fields: complete fields, and the text behind them."""
LOST_LINE: Final = re.compile(
    r"\s*(?:CPU:(\d{1,18}) )?\[(?:LOST (?:(\d{1,18}) )?EVENTS|(?:(\d{1,18}) )?EVENTS DROPPED)\]"
)
_PERF_LOST: Final = re.compile(r"PERF_RECORD_LOST\w*\s+lost (\d{1,18})")
_WRITTEN: Final = re.compile(r"#\s+entries-in-buffer/entries-written: (\d{1,18})/(\d{1,18})")
_STARTED: Final = re.compile(r"##### CPU (\d{1,18}) buffer started ####")
"""The kernel prints this line only if it overwrote events, so earlier events of the processor are lost."""
_HEADER: Final = re.compile(r"\s*(?:cpus=\d+|version = \S+|CPU:? ?\d+ is empty)$")
"""The lines of trace-cmd about its file."""
_UNPARSED: Final = "[FAILED TO PARSE]"
_FIELDS: Final = {
    **dict.fromkeys((QUEUE, GETRQ, BACKMERGE, FRONTMERGE, SPLIT), (_BIO, "7,0 W 1053824 + 8 [task]")),
    **dict.fromkeys((INSERT, ISSUE, RQ_MERGE), (_REQUEST, "7,0 W 12288 () 536 + 24 be,0,4 [task]")),
}
"""The fields of each event, and an example."""


def is_ftrace(line: str) -> bool:
    """Return whether *line* can be a line of ftrace's text: an event, a loss, or a header of its tools.

    `reader` asks this of the first lines, to choose the parser.
    """
    text = line.rstrip()
    return line.startswith("# tracer:") or any(form.match(text) for form in (_LINE, LOST_LINE, _HEADER))


def parse(lines: Iterator[tuple[int, str]], wrong: Callable[[int, str], BadInput]) -> Iterator[Event]:
    """Yield the block layer's events and the losses, in the text's order; `reader` calls it.

    *lines*: pairs of a number, from 1, and its line.  *wrong* makes the error for a line from its number and
    a message.  A loss is a `LOST` event.  Comments and events of other tracepoints yield nothing.

    Raises:
        BadInput: a line is neither an event nor a comment, or an event lacks its fields.
    """
    match = _LINE.match
    for number, line in lines:
        line_match = match(line.rstrip())
        if line_match is None:
            if line.strip():
                yield from _losses_in(number, line, wrong)
            continue
        pid, cpu, name, fields, unnamed = line_match.groups()
        if name in _FIELDS:
            form, example = _FIELDS[name]
            place = form.match(fields)
            if place is None or (place[3] is None and place[4] != "0"):
                raise wrong(number, _bad_fields(name, "fields", fields, _REMARKED[form], example))
            device, rwbs, sector, size = place.groups()
            event = Event(number, int(pid), int(cpu), name, device, rwbs, int(sector or 0), int(size))
            yield event if event.size else without_sectors(event)
        elif name == PLUG:
            yield Event(number, int(pid), int(cpu), name)
        elif name == UNPLUG:
            count = _UNPLUG.match(fields)
            if count is None:
                raise wrong(number, _bad_fields(name, "count", fields, _REMARKED[_UNPLUG], "[task] 1"))
            yield Event(number, int(pid), int(cpu), name, size=int(count[1]))
        elif name is None and (loss := _PERF_LOST.match(unnamed)):
            yield Event(number, 0, int(cpu), LOST, size=int(loss[1]))


def _bad_fields(name: str, part: str, fields: str, remarked: re.Pattern[str], example: str) -> str:
    if fields.startswith(_UNPARSED):
        remedy = "trace-cmd could not print them; give the text of /sys/kernel/tracing/trace"
        return f"{name} has no {part}; {remedy}"
    return bad_fields(name, part, fields, remarked, example)


def _losses_in(number: int, line: str, wrong: Callable[[int, str], BadInput]) -> Iterator[Event]:
    """Yield the loss that *line* reports, if any; a comment and a header yield nothing."""
    if loss := LOST_LINE.match(line):
        yield Event(number, 0, int(loss[1] or 0), LOST, size=int(loss[2] or loss[3] or 0))
    elif start := _STARTED.match(line):
        yield Event(number, 0, int(start[1]), LOST)
    elif counts := _WRITTEN.match(line):
        if int(counts[1]) < int(counts[2]):
            yield Event(number, 0, 0, LOST, size=int(counts[2]) - int(counts[1]))
    elif not line.startswith("#") and not _HEADER.match(line.rstrip()):
        raise wrong(number, refusal("an ftrace text (TASK-PID [CPU] FLAGS TIMESTAMP: event: fields)", line))
