"""The device, rules and limits of a replay: from the header of the capture, or else from the options.

A what-if counts the requests that another kernel would have issued for the same bios.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from wbsim.experiments.captures.events import QUEUE, Capture, Header
from wbsim.experiments.captures.waiting import SCHEDULERS
from wbsim.experiments.config.problems import BadInput, Problem, bad
from wbsim.models.block.spec import MAX_DISCARD_BYTES, QueueLimits
from wbsim.models.catalogue.kernels import era_of
from wbsim.sim.units import KIB

_FEWEST: Final = {"max_sectors_kb": 4, "max_segments": 1}  # a request must have room for a page
_MOST: Final = 1_000_000

NEWEST = "6.18"
"""The kernel that is assumed if neither the header nor the options name one."""


@dataclass(frozen=True)
class Options:
    """The options of the command line; None: not given.  ``device`` is "major,minor", as of `device_of`."""

    device: str | None = None
    kernel: str | None = None
    scheduler: str | None = None
    nomerges: int | None = None
    max_sectors_kb: int | None = None
    max_segments: int | None = None


@dataclass(frozen=True)
class Conditions:
    """The conditions of a replay.

    * ``kernel``: the kernel that made the capture; ``era`` names its plug rules, a key of `PLUG_RULES`.
    * ``what_if_era``: the era of the what-if; None: not asked for.
    * ``device``: the judged device, "major,minor"; ``scheduler``: that of its queue.
    * ``limits``: the limits of the queue; a segment has always at most 64 KiB.
    * ``notes``: the assumptions, as messages for the user.
    """

    kernel: str
    era: str
    what_if_era: str | None
    device: str
    scheduler: str
    limits: QueueLimits
    notes: tuple[str, ...]


def conditions_of(capture: Capture, options: Options) -> Conditions:
    """Return the conditions of a replay from *capture*'s header, completed by *options*.

    A missing nomerges is taken as 0, a missing scheduler as none, and a missing kernel as `NEWEST`; a note
    says so.  The `device` option takes precedence over the header.  If neither names a device, the only
    device with bios is judged.  The `kernel` option completes the header, and always asks for a what-if.

    Raises:
        BadInput: a limit is missing or out of range, or a limit or the scheduler contradicts the header.  Or
            the kernel or scheduler is unknown, or the capture has a bad line or no bio for the device.  Or
            several devices have bios and none is named.
    """
    header, place = capture.header, str(capture.path)
    problems: list[Problem] = []
    notes: list[str] = []
    values: dict[str, int] = {}
    for name in ("max_sectors_kb", "max_segments", "nomerges"):
        header_value, option = getattr(header, name), getattr(options, name)
        flag = "--" + name.replace("_", "-")
        if header_value is not None and option is not None and header_value != option:
            problems.append(
                Problem(f"{place}:1", name, f"is {header_value} in the header; leave out {flag} {option}")
            )
        elif header_value is None and option is None and name == "nomerges":
            values[name] = 0
            notes.append("the header has no nomerges; 0 is assumed; give --nomerges if it was different")
        elif header_value is None and option is None:
            problems.append(Problem(f"{place}:1", name, f"is not in the header; give {flag}"))
        else:
            values[name] = header_value if header_value is not None else option
    for name, value in values.items():
        if name == "nomerges" and value not in (0, 1, 2):
            problems.append(Problem(place, name, f"is {value}; give 0, 1 or 2"))
        elif name != "nomerges" and not _FEWEST[name] <= value <= _MOST:
            problems.append(
                Problem(place, name, f"is {value}; give a number from {_FEWEST[name]} to {_MOST}")
            )
    scheduler = _scheduler(header, options, problems, notes, place)
    kernel, era, what_if_era = _kernel(header, options, problems, notes, place)
    if problems:
        raise BadInput(problems)
    discards = min(header.discard_max_bytes or 0, MAX_DISCARD_BYTES)
    limits = QueueLimits.model_validate(
        {
            "max_sectors_bytes": values["max_sectors_kb"] * KIB,
            "max_segments": values["max_segments"],
            "max_segment_bytes": 64 * KIB,
            "nomerges": values["nomerges"],
            **({"max_discard_bytes": discards} if discards else {}),
        }
    )
    return Conditions(kernel, era, what_if_era, _device(capture, options), scheduler, limits, tuple(notes))


def _scheduler(
    header: Header, options: Options, problems: list[Problem], notes: list[str], place: str
) -> str:
    scheduler = header.scheduler or options.scheduler
    if header.scheduler is not None and options.scheduler not in (None, header.scheduler):
        message = f"is {header.scheduler} in the header; leave out --scheduler {options.scheduler}"
        problems.append(Problem(f"{place}:1", "scheduler", message))
    if scheduler is None:
        notes.append("the header has no scheduler; none is assumed; give --scheduler if it was different")
        return "none"
    if scheduler not in SCHEDULERS:
        problems.append(Problem(place, "scheduler", f"is {scheduler}; use one of {', '.join(SCHEDULERS)}"))
    return scheduler


def _kernel(
    header: Header, options: Options, problems: list[Problem], notes: list[str], place: str
) -> tuple[str, str, str | None]:
    """Return the capture's kernel, its era, and the era that the options ask for."""
    kernel = header.kernel or options.kernel
    if kernel is None:
        kernel = NEWEST
        notes.append(f"the header has no kernel; {NEWEST} is assumed; give --kernel if it was different")
    eras: list[str | None] = []
    for name in (kernel, options.kernel):
        try:
            eras.append(None if name is None else era_of(name))
        except ValueError as error:
            problems.append(Problem(place, "kernel", str(error)))
            eras.append(None)
    what_if_era = eras[1]
    if what_if_era is not None and options.kernel not in (what_if_era, kernel):
        notes.append(f"--kernel is {options.kernel}; its plug has the rules of Linux {what_if_era}")
    return kernel, eras[0] or "", what_if_era


def _device(capture: Capture, options: Options) -> str:
    """Return the device that is judged.

    Raises:
        BadInput: the capture has no bio for the named device, or several devices and none is named.
    """
    choice = options.device or capture.header.device
    bios = Counter(event.device for event in capture.events() if event.name == QUEUE)
    devices = ", ".join(f"{device} ({count} bios)" for device, count in bios.most_common())
    if choice is not None:
        if choice not in bios:
            has = f"the devices with bios are {devices}" if devices else "it has no bio for any device"
            raise bad(str(capture.path), f"has no bio for {choice}; {has}", "device")
        return choice
    if not bios:
        raise bad(str(capture.path), "has no bio; record the event block_bio_queue too")
    if len(bios) > 1:
        raise bad(
            str(capture.path), f"has several devices; give one of them with --device: {devices}", "device"
        )
    device = next(iter(bios))
    assert device is not None
    return device


def device_of(text: str | None) -> str | None:
    """Return *text* (MAJ:MIN or MAJ,MIN), the user's --device, as the tracepoints write it.

    None stays None.

    >>> device_of("7:0")
    '7,0'

    Raises:
        BadInput: *text* is no device.
    """
    if text is None:
        return None
    major, separator, minor = text.replace(",", ":").partition(":")
    if not (separator and major.isdigit() and minor.isdigit()):
        raise bad("--device", f"is {text!r}; give MAJ:MIN, such as 7:0")
    return f"{major},{minor}"
