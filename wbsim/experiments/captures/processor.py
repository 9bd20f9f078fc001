"""The flusher's processor time in a capture with sched_switch, per file and per request.

The time between two events of a flusher belongs to the work that the second event ends.  Time off the
processor and the time of tracing itself are subtracted.

    block_bio_queue, writeback_single_inode    an inode was taken, mapped, its pages walked
    block_bio_backmerge, -frontmerge           its bio was merged
    block_getrq, block_plug                    it got a request
    block_unplug, block_rq_insert, -issue      requests were sent on

A worker is the flusher of a device from ``writeback_start`` of the device's bdi until ``writeback_start`` of
another bdi.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import Final, NamedTuple

from wbsim.experiments.captures.reader import lines_of
from wbsim.experiments.config.problems import bad

INODE: Final = "inode"
REQUEST: Final = "request"
_STAGES: Final = {
    "block_bio_queue": INODE, "writeback_single_inode": INODE, "block_bio_backmerge": INODE,
    "block_bio_frontmerge": INODE, "block_getrq": REQUEST, "block_plug": REQUEST, "block_unplug": REQUEST,
    "block_rq_insert": REQUEST, "block_rq_issue": REQUEST,
}  # fmt: skip
_EVENT: Final = re.compile(
    r"\s*.{1,16}?-(\d{1,18})\s.*?\[\d+\]\s+(?:[^\s:]{4,9}\s+)?(\d{1,18})\.(\d{6}): (\w+): ?(.*)"
)
_SWITCH: Final = re.compile(r"prev_comm=.* prev_pid=(\d{1,18}) .* next_pid=(\d{1,18}) ")
_BDI: Final = re.compile(r"bdi (\d{1,18}):(\d{1,18}): ")
_WROTE: Final = re.compile(r" wrote=(\d{1,18}) ")
_NEEDED: Final = ("kernel", "device", "filesystem", "at", "event_ns", "program_ns")
_COMMAND: Final = "# command: "


class Recording(NamedTuple):
    """The values in the first two lines of a capture with sched_switch.

    * ``mount_point``: the mount point of the filesystem on ``device``.
    * ``event_ns``: the time of tracing an event.
    * ``program_ns``: the processor time of ``command`` and of all processes that it started.
    """

    kernel: str
    device: str
    filesystem: str
    mount_point: str
    event_ns: int
    program_ns: int
    command: str


@dataclass(frozen=True)
class FlusherTime:
    """The processor time of a device's flushers.

    ``files``: the writebacks of a file that wrote pages; a file counts again each time.  ``pages``: the pages
    that they wrote.  ``requests``: the new requests (getrq).  ``file_ns``: the mean time for each of
    ``files``, including its pages and bios.  ``request_ns``: the mean time for each of ``requests``.
    """

    recording: Recording
    files: int
    pages: int
    requests: int
    file_ns: float
    request_ns: float


@dataclass
class _Worker:
    """A task that was a flusher at least once; times in ns.

    * ``last``: the time of its last event.
    * ``departure``: the time when it left its processor; None: it runs.
    * ``absence``: the time off the processor since its last event.
    * ``serves_device``: the bdi that it writes back is the device's.
    """

    last: int | None = None
    departure: int | None = None
    absence: int = 0
    serves_device: bool = False


@dataclass
class _Sums:
    ns: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    files: int = 0
    pages: int = 0


def flusher_time(path: Path) -> FlusherTime:
    """Return the mean processor time (ns) of the flushers per written file and per request.

    *path*: the capture.  The time of tracing is subtracted; a mean is at least 0.
    `wbsim.experiments.machines.costs` derives the costs of a machine from the result.

    Raises:
        BadInput: the capture was not recorded with ``wbsim capture --cpu``, or no flusher wrote in it.  Or
            *path* cannot be read.
    """
    recording = _recording(path)
    sums, workers = _Sums(), dict[int, _Worker]()
    for _, line in lines_of(path):
        event = _EVENT.match(line)
        if event is None:
            continue
        pid, seconds, micros, name, fields = event.groups()
        now = int(seconds) * 1_000_000_000 + int(micros) * 1_000
        if name == "sched_switch":
            _switch(workers, fields, now)
        elif name == "writeback_start":
            bdi = _BDI.match(fields)
            serves_device = bdi is not None and f"{bdi[1]},{bdi[2]}" == recording.device
            workers[int(pid)] = _Worker(last=now, serves_device=serves_device)
        elif int(pid) in workers:
            _event(workers[int(pid)], name, fields, now, sums)
    requests = sums.events["block_getrq"]
    if not sums.files or not requests:
        raise bad(
            str(path),
            f"has no write by a flusher of {recording.device}; capture a command that writes many files",
        )

    def mean_ns(stage: str, count: int) -> float:
        traced = sum(number for name, number in sums.events.items() if _STAGES[name] == stage)
        return max(0.0, (sums.ns[stage] - traced * recording.event_ns) / count)

    file_ns, request_ns = mean_ns(INODE, sums.files), mean_ns(REQUEST, requests)
    return FlusherTime(recording, sums.files, sums.pages, requests, file_ns, request_ns)


def _recording(path: Path) -> Recording:
    first, second = ([line for _, line in islice(lines_of(path), 2)] + ["", ""])[:2]
    words = first.lstrip("# ").split()
    values = dict(pairwise(words))
    if absent_keys := [name for name in _NEEDED if name not in values]:
        raise bad(f"{path}:1", f"lacks {absent_keys[0]}; record the capture with wbsim capture --cpu")
    numbers = {name: values[name] for name in ("event_ns", "program_ns")}
    for name, value in numbers.items():
        if not (value.isascii() and value.isdecimal()):
            raise bad(
                f"{path}:1",
                f"{value!r} is not a whole number; record the capture with wbsim capture --cpu",
                name,
            )
    if not second.startswith(_COMMAND):
        raise bad(f"{path}:2", "lacks the command; record the capture with wbsim capture --cpu")
    kernel, device, filesystem, mount_point = (values[name] for name in _NEEDED[:4])
    of_event, of_program = map(int, numbers.values())
    return Recording(
        kernel,
        device,
        filesystem,
        mount_point,
        of_event,
        of_program,
        second.removeprefix(_COMMAND).rstrip("\n"),
    )


def _switch(workers: dict[int, _Worker], fields: str, now: int) -> None:
    """Record a sched_switch at *now*: one task leaves its processor, and another task gets it."""
    if switch := _SWITCH.match(fields):
        if leaves := workers.get(int(switch[1])):
            leaves.departure = now
        comes = workers.get(int(switch[2]))
        if comes is not None and comes.departure is not None:
            comes.absence += now - comes.departure
            comes.departure = None


def _event(worker: _Worker, name: str, fields: str, now: int, sums: _Sums) -> None:
    """Add the time of *worker* since its last event to the stage that the event *name* ends."""
    stage = _STAGES.get(name)
    if stage is None:
        if name == "writeback_written":
            worker.last, worker.absence = now, 0
        return
    if worker.serves_device and worker.last is not None:
        sums.ns[stage] += now - worker.last - worker.absence
        sums.events[name] += 1
        if name == "writeback_single_inode" and (wrote := _WROTE.search(fields)) and int(wrote[1]):
            sums.files += 1
            sums.pages += int(wrote[1])
    worker.last, worker.absence = now, 0
