"""Record the block layer's events while a command runs, with the queue's limits in the first line.

The recording uses a new tracefs instance, whose ``trace`` file is read as plain text.  The tracing of the
machine is not touched, and removing the instance restores everything.
"""

from __future__ import annotations

import gzip
import lzma
import os
import platform
import re
import resource
import shlex
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from wbsim.experiments.captures.ftrace import LOST_LINE
from wbsim.experiments.config.problems import bad
from wbsim.experiments.running.store import replace_whole
from wbsim.sim.interrupts import ended_by_signals, hear_signals, signals_held
from wbsim.sim.units import GIB

TRACEFS: Final = Path("/sys/kernel/tracing")
EVENTS: Final = (
    "block/block_bio_queue", "block/block_split", "block/block_getrq", "block/block_bio_backmerge",
    "block/block_bio_frontmerge", "block/block_plug", "block/block_unplug", "block/block_rq_insert",
    "block/block_rq_issue", "block/block_rq_merge", "block/block_rq_complete",
    "writeback/writeback_start", "writeback/writeback_written", "writeback/writeback_single_inode",
)  # fmt: skip
SWITCHES: Final = "sched/sched_switch"
MARKS: Final = 20_000
"""The number of marks that are written to measure the time of tracing an event."""
LIMITS: Final = (
    "scheduler",
    "nomerges",
    "max_sectors_kb",
    "max_segments",
    "max_segment_size",
    "discard_max_bytes",
    "nr_requests",
)
_QUEUED: Final = re.compile(r": block_bio_queue: (\d+,\d+) ")
GRACE_S: Final = 2
"""The time that a command has to end after SIGTERM, before it is killed (s)."""


class Recorded(NamedTuple):
    """The counts of a recording.

    ``status``: the exit status of the command; -N if signal N ended it.  ``bios``: the number of bios for
    ``device``, "major,minor".  ``foreign_bios``: that for all other devices.  ``losses``: the number of lost
    events, as far as the kernel counted them.
    """

    status: int
    device: str
    bios: int
    foreign_bios: int
    losses: int


def record(
    path: Path, command: Sequence[str], buffer_mib: int, device: str | None = None, cpu: bool = False
) -> Recorded:
    """Record the events of *command* and of a sync(2) after it to *path* (.gz and .xz are packed).

    Return the exit status of the command, the device, and the numbers of bios and of lost events.  An
    existing *path* is replaced when the command has ended.  An earlier sync(2) writes back the dirty pages of
    other programs, so that they are not recorded.

    Args:
        path: the file of the capture.
        command: the program and its arguments.
        buffer_mib: the size of each processor's event buffer.
        device: "major,minor" of the disk whose limits the first line gives; None: that with the most bios.
        cpu: record sched_switch too, and give in the first line the values that
            `wbsim.experiments.captures.processor` needs.

    Raises:
        BadInput: not root, no such command, no bio at all, or the kernel lacks tracefs or the events.  Or
            *device* has no queue, or *path* cannot be written.
    """
    if os.geteuid() != 0:
        raise bad("capture", "needs root to use tracefs; run the command with sudo")
    if shutil.which(command[0]) is None:
        raise bad("capture", f"{command[0]} is not an executable command; give a command after --")
    if device is not None:
        queue_of(device)
    recorded: list[Recorded] = []

    def write(partial: Path) -> None:
        os.sync()
        events = (*EVENTS, SWITCHES) if cpu else EVENTS
        with ended_by_signals(), _tracefs() as root, own_instance(root, buffer_mib, events) as instance:
            event_ns, start_ns = (_event_ns(instance) if cpu else 0), _of_children_ns()
            status = _status_of(command)
            program_ns = _of_children_ns() - start_ns
            os.sync()
            (instance / "tracing_on").write_text("0")
            bios, losses = count_bios(instance / "trace")
            disk = device or bios.most_common(1)[0][0]
            with _packed(path)(partial, "wt", encoding="utf-8", errors="surrogateescape") as file:
                times = f" event_ns {event_ns} program_ns {program_ns} {mounted(disk)}" if cpu else ""
                file.write(f"# {limits(disk)}{times}\n# command: {shlex.join(command)}\n")
                with (instance / "trace").open(encoding="utf-8", errors="surrogateescape") as text:
                    shutil.copyfileobj(text, file)
        recorded.append(Recorded(status, disk, bios[disk], bios.total() - bios[disk], losses))

    replace_whole(path, write)
    return recorded[0]


def _packed(path: Path) -> Any:
    openers: dict[str, object] = {".gz": gzip.open, ".xz": lzma.open}
    return openers.get(path.suffix, open)


def _status_of(command: Sequence[str]) -> int:
    """Run *command* in a new process group, which ends with this process; return its exit status."""
    process: subprocess.Popen[bytes] | None = None
    try:
        with signals_held():  # until `process` is set, so that a signal can end the command
            process = subprocess.Popen(command, process_group=0, preexec_fn=hear_signals)
        return process.wait()
    finally:
        if process is not None and process.returncode is None:  # an exception or a signal ends this process
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, number)
                    process.wait(GRACE_S)


@contextmanager
def _tracefs() -> Iterator[Path]:
    """Yield the mount point of tracefs; if tracefs is not mounted, mount it while the body runs."""
    if (TRACEFS / "events").is_dir():
        yield TRACEFS
        return
    mounted: subprocess.CompletedProcess[str] | None = None
    try:
        with signals_held():  # until `mounted` is set, so that a signal undoes the mount
            mounted = subprocess.run(
                ["mount", "-t", "tracefs", "tracefs", TRACEFS], capture_output=True, text=True, check=False
            )
        if mounted.returncode != 0:
            raise bad(
                str(TRACEFS),
                f"tracefs cannot be mounted ({mounted.stderr.strip()}); the kernel needs CONFIG_FTRACE",
            )
        yield TRACEFS
    finally:
        if mounted is not None and mounted.returncode == 0:
            with signals_held():
                subprocess.run(["umount", TRACEFS], check=True)


@contextmanager
def own_instance(root: Path, buffer_mib: int, events: Sequence[str] = EVENTS) -> Iterator[Path]:
    """Yield the directory of a new tracefs instance, which records *events*; remove it after the body.

    This needs root.  *root* is the mount point of tracefs.  *buffer_mib*: the buffer of each processor.  An
    event is named like "block/block_plug".  Events that the kernel lacks are left out, but not
    block_bio_queue and sched_switch.  The instance records from the beginning of the body; its file ``trace``
    has the events.

    Raises:
        BadInput: the kernel lacks block events or sched_switch.
    """
    absent_events = [event for event in events if not (root / "events" / event).is_dir()]
    if "block/block_bio_queue" in absent_events:
        raise bad(str(root / "events"), "has no block events; the kernel needs CONFIG_BLK_DEV_IO_TRACE")
    if SWITCHES in absent_events:
        raise bad(str(root / "events"), "has no event sched_switch; leave --cpu out")
    instance = root / "instances" / f"wbsim-{os.getpid()}"
    exists = False
    try:
        with signals_held():
            instance.mkdir()
            exists = True
        (instance / "buffer_size_kb").write_text(str(buffer_mib * 1024))
        for event in events:
            if event not in absent_events:
                (instance / "events" / event / "enable").write_text("1")
        (instance / "tracing_on").write_text("1")
        yield instance
    finally:
        if exists:
            with signals_held():
                instance.rmdir()


def _event_ns(instance: Path) -> int:
    """Return the time of tracing an event (ns): that of a mark less that of a write to /dev/null.

    The marks are removed from the trace.
    """

    def each_ns(path: Path) -> int:
        with path.open("wb", buffering=0) as file:
            file.write(b"mark")
            began = time.perf_counter_ns()
            for _ in range(MARKS):
                file.write(b"mark")
            return (time.perf_counter_ns() - began) // MARKS

    took = each_ns(instance / "trace_marker") - each_ns(Path(os.devnull))
    (instance / "trace").write_text("")
    return max(0, took)


def _of_children_ns() -> int:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((usage.ru_utime + usage.ru_stime) * 1e9)


def mounted(device: str) -> str:
    """Return the filesystem on *device* and its mount point, as ``filesystem ext4 at /mnt``.

    Return "" if *device* ("major,minor") is not mounted; of several mounts, the first counts.
    """
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        words = fields.split()
        if words[2] == device.replace(",", ":"):
            return f"filesystem {rest.split()[0]} at {words[4]}"
    return ""


def count_bios(trace: Path) -> tuple[Counter[str], int]:
    """Return the number of bios for each device ("major,minor"), and of lost events, in the file *trace*.

    Losses without a number of events count 0.

    Raises:
        BadInput: the text has no bio.
    """
    bios: Counter[str] = Counter()
    losses = 0
    with trace.open(encoding="utf-8", errors="surrogateescape") as text:
        for line in text:
            if bio := _QUEUED.search(line):
                bios[bio[1]] += 1
            elif loss := LOST_LINE.match(line):
                losses += int(loss[2] or 0)
    if not bios:
        raise bad(
            "capture",
            "the command and the sync after it submitted no bio; give a command that writes to a disk",
        )
    return bios, losses


def limits(device: str) -> str:
    """Return a capture's first line without "# ": kernel, queue limits, processors, memory (GiB), device.

    Raises:
        BadInput: *device* ("major,minor") has no queue.
    """
    queue = queue_of(device)
    values = {name: (queue / name).read_text().strip() for name in LIMITS}
    scheduler = values["scheduler"]
    if "[" in scheduler:
        values["scheduler"] = scheduler[scheduler.index("[") + 1 : scheduler.index("]")]
    limits = " ".join(f"{name} {value}" for name, value in values.items())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB
    return f"kernel {platform.release()} {limits} cpus {os.cpu_count()} mem {memory:.0f}GiB device {device}"


def queue_of(device: str) -> Path:
    """Return the sysfs directory of the queue of *device* ("major,minor"), a disk or a partition.

    Raises:
        BadInput: the device has no queue.
    """
    place = Path("/sys/dev/block") / device.replace(",", ":")
    for path in (place, place.resolve().parent):
        if (path / "queue").is_dir():
            return path / "queue"
    raise bad("--device", f"{device} has no queue in /sys/dev/block; give the MAJ:MIN of a disk")
