"""The text that blkparse prints in its default format: ``%D %2c %8s %5T.%9t %5p %2a %3d`` and the rest.

A sequence number that is skipped is an event that was lost.
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
    SPLIT,
    UNPLUG,
    Event,
)
from wbsim.experiments.config.problems import BadInput

_LINE = re.compile(
    r"\s*(\d+,\d+)\s+(\d{1,18})\s+(\d{1,18})\s+\d+\.\d{9}\s+(\d{1,18})\s+([A-Z]{1,2}|m)\s+([A-Z]+(?=\s)|)\s*(.*?)\n?$"
)
_PLACE = re.compile(r"(?:(\d{1,18}) ([+/]) (\d{1,18}) )?\[.*\]$")
_REQUEST = re.compile(r"(?:(\d{1,18}) \+ (\d{1,18}) )?(?:\d* ?\(.*\) )?\[.*\]$")
_COUNT = re.compile(r"\[.*\] (\d{1,18})$")
_FOOTER = re.compile(r"(CPU\d+|Total) \(")
_BIOS = {"Q": QUEUE, "G": GETRQ, "M": BACKMERGE, "F": FRONTMERGE, "X": SPLIT}
_REQUESTS = {"I": INSERT, "D": ISSUE}


def is_blkparse(line: str) -> bool:
    """Whether *line* can stand in such a text."""
    return _LINE.match(line) is not None


def parse(lines: Iterator[tuple[int, str]], wrong: Callable[[int, str], BadInput]) -> Iterator[Event]:
    """The block layer's events, in the text's order, up to the summary.

    Raises:
        BadInput: a line is no event of the default format.
    """
    expected: dict[tuple[str, str], int] = {}
    for number, line in lines:
        found = _LINE.match(line)
        if found is None:
            if not line.strip() or line.startswith("#"):
                continue
            if _FOOTER.match(line):
                return
            raise wrong(number, "is no line of blkparse's default format; leave out -f and -F")
        device, cpu, sequence, pid, action, rwbs, rest = found.groups()
        lost = int(sequence) - expected.get((device, cpu), int(sequence))
        expected[device, cpu] = int(sequence) + 1
        if lost > 0:
            yield Event(number, 0, int(cpu), LOST, size=lost)
        name = _BIOS.get(action) or _REQUESTS.get(action)
        if name is not None:
            place = (_PLACE if action in _BIOS else _REQUEST).match(rest)
            if place is None:
                raise wrong(number, f"{action} without its place; expected sector + sectors [task]")
            sector, size = int(place[1] or 0), int(place[place.re.groups] or 0)
            yield Event(number, int(pid), int(cpu), name, device, rwbs, sector, size)
        elif action == "P":
            yield Event(number, int(pid), int(cpu), PLUG, device)
        elif action in ("U", "UT"):
            count = _COUNT.match(rest)
            if count is None:
                raise wrong(number, f"{action} without its count; expected [task] 1")
            yield Event(number, int(pid), int(cpu), UNPLUG, device, size=int(count[1]), asleep=action == "UT")
