"""`wbsim describe-machine --measure`: the costs of system calls on this machine, from short runs.

XFS and ext4 are made on loop devices whose files are in memory, and this process writes and creates files
there.  The data of the files stays in the page cache, so that neither the flusher nor a disk is measured.
Of several rounds, the lowest counts for write(2) and for user-space work, and the median for creat(2).  A
write makes new pages, and a page that the host of a guest took back costs microseconds.  The machine file has
the range and the median of the rounds.

Times that contradict each other were disturbed, for example a page of a large write that takes longer than a
write of one page.  They are measured again; if they still contradict each other, the machine file says so.
The parts of a write(2) always sum to its time.

The desk is the reference machine (docs/measurements.md H); its times are those of the model's catalogue.
"""

from __future__ import annotations

import bz2
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha1
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from typing import Any, Final, NamedTuple

from wbsim.experiments.config.problems import bad
from wbsim.models.catalogue.machines import MACHINES
from wbsim.sim.interrupts import signals_held
from wbsim.sim.units import GIB, KIB, MIB, PAGE_BYTES

DESK: Final = "desk-vm"
PLACE: Final = "describe-machine --measure"
ROUNDS: Final = 5
REPEATS: Final = 2
"""The number of times that the rounds of a filesystem are repeated if their times contradict each other."""
NOISE: Final = 0.1
"""A part of a write(2) may come out negative by this share of the write; more contradicts the other times.

A page that is written in place lies in the processor's cache, and a page of a large write does not.
"""
KINDS: Final = ("xfs", "ext4")
_PACKAGES: Final = {"xfs": "xfsprogs", "ext4": "e2fsprogs"}
_IMAGE_BYTES: Final = GIB
_MOST_BYTES: Final = 256 * MIB
"""The largest size of a file that is written."""
_LEAST_BYTES: Final = 16 * MIB
FILES: Final = 20_000
_MIB_PAGES: Final = MIB // PAGE_BYTES
_TEXT_BYTES: Final = MIB
DESK_PROGRAM_NS: Final = 97_000_000
"""The time of compressing `_sample` on the desk, where fs_mark takes 3.6 us of user time a file."""
_CHUNK_INODES: Final = 64
SAME: Final = 0.005
"""The share by which two times may differ that a comment calls the same."""
_SPREAD: Final = 1.5
"""An assumed time ranges from its value divided by this factor to its value times this factor."""


class Times(NamedTuple):
    """The time of each round (ns); the time of a call is the mean over the calls of the round."""

    rounds: tuple[float, ...]

    @property
    def lowest(self) -> float:
        """The lowest time (ns): a round without pages that the host of a guest took back."""
        return min(self.rounds)

    @property
    def middle(self) -> float:
        """The median of the rounds (ns)."""
        return median(self.rounds)

    def text(self) -> str:
        """Return the lowest time in us, or in ms from 1 ms, with the range and the median of the rounds.

        >>> Times((1200.0, 1500.0, 1300.0)).text()
        '1.20 us (3 rounds from 1.20 to 1.50, median 1.30)'
        """
        unit, ns = ("ms", 1e6) if self.lowest >= 1e6 else ("us", 1e3)
        low, middle, high = (time / ns for time in (self.lowest, self.middle, max(self.rounds)))
        rounds = f"{len(self.rounds)} rounds from {low:.2f} to {high:.2f}, median {middle:.2f}"
        return f"{low:.2f} {unit} ({rounds})"


class CallTimes(NamedTuple):
    """The processor time of system calls on one filesystem.

    * ``new_page``: a write(2) of 4 KiB behind the end of a file.
    * ``same_page``: a write(2) of 4 KiB into an existing page.
    * ``new_mib``: a write(2) of 1 MiB behind the end of a file.
    * ``create``: a creat(2) with its close(2).
    """

    new_page: Times
    same_page: Times
    new_mib: Times
    create: Times


class Measurement(NamedTuple):
    """The times of ``calls`` by filesystem (`KINDS`), and of a piece of user-space work (``program``).

    ``release``: the kernel's.  ``program``: the processor time in which bzip2 compresses 1 MiB.
    """

    release: str
    calls: dict[str, CallTimes]
    program: Times


class WriteCost(NamedTuple):
    """The parts of a write(2) (ns), as in `models.vfs.spec.WriteCosts`.

    ``call``: for each call; ``folio``: for each folio that is added to the page cache; ``page``: for each
    page; ``block``: for each block of ext4.
    """

    call: float
    folio: float
    page: float
    block: float


def measure() -> Measurement:
    """Return the times of system calls and of user-space work on this machine.

    This takes less than half a minute; on a disturbed machine, rounds are repeated up to `REPEATS` times.
    Loop devices are mounted in memory, and removed.  A filesystem without its mkfs is left out.

    Raises:
        BadInput: the user is not root, every mkfs is missing, less than 256 MiB of memory is available, or
            pages are not 4 KiB.  Or a loop device cannot be mounted or written.
    """
    if os.geteuid() != 0:
        raise bad(PLACE, "needs root to mount loop devices; run the command with sudo")
    kinds = [kind for kind in KINDS if shutil.which(f"mkfs.{kind}")]
    if not kinds:
        raise bad(PLACE, f"mkfs.xfs and mkfs.ext4 are missing; install {' or '.join(_PACKAGES.values())}")
    available = available_bytes()
    size = min(_MOST_BYTES, available // 16 // MIB * MIB)
    if size < _LEAST_BYTES:
        least_mib = 16 * _LEAST_BYTES // MIB
        raise bad(
            PLACE, f"{available // MIB} MiB of memory are available; free some, to have {least_mib} MiB"
        )
    if os.sysconf("SC_PAGE_SIZE") != PAGE_BYTES:
        raise bad(
            PLACE,
            f"pages have {os.sysconf('SC_PAGE_SIZE')} B on this machine; wbsim models only pages of 4 KiB",
        )
    calls = {}
    for kind in kinds:
        with mounted(kind) as folder:
            try:
                calls[kind] = steady_call_times(folder, size)
            except OSError as error:
                raise bad(PLACE, f"a file on {kind} cannot be written: {error.strerror}") from None
    sample = _sample()
    bz2.compress(sample)
    program = Times(tuple(busy_ns(lambda: bz2.compress(sample)) for _ in range(ROUNDS)))
    return Measurement(platform.release(), calls, program)


def available_bytes() -> int:
    """Return MemAvailable of /proc/meminfo in bytes; 0 if this line is missing, as before Linux 3.14."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * KIB
    return 0


@contextmanager
def mounted(kind: str) -> Iterator[Path]:
    """Make a filesystem of *kind* (`KINDS`) on a loop device in memory, and yield its mount point.

    After the body of the ``with``, the mounts, the loop device and their files are removed.

    Raises:
        BadInput: a command that this needs fails, as for a user who is not root, or is missing.
    """
    with ExitStack() as stack:
        folder = Path(mkdtemp(prefix="wbsim-"))
        stack.callback(folder.rmdir)
        memory, mount_point = folder / "memory", folder / "files"
        for directory in (memory, mount_point):
            directory.mkdir()
            stack.callback(directory.rmdir)
        with signals_held():  # until the undo is registered
            _run("mount", "-t", "tmpfs", "-o", f"size={2 * _IMAGE_BYTES}", "wbsim", str(memory))
            stack.callback(umount, memory)
        image = memory / "image"
        with image.open("wb") as file:
            file.truncate(_IMAGE_BYTES)
        with signals_held():
            device = _run("losetup", "-f", "--show", str(image)).strip()
            stack.callback(_detach, device)
        _run(f"mkfs.{kind}", "-q", device)
        with signals_held():
            _run("mount", "-o", "noatime", device, str(mount_point))
            stack.callback(umount, mount_point)
        yield mount_point


def umount(path: Path) -> None:
    """Unmount *path*; if *path* is busy, have the kernel unmount it when it is no longer busy (umount -l).

    Raises:
        BadInput: both fail.
    """
    with signals_held():
        if subprocess.run(["umount", str(path)], capture_output=True, check=False).returncode:
            _run("umount", "-l", str(path))


def _detach(device: str) -> None:
    """Detach the loop *device* from its file."""
    with signals_held():
        _run("losetup", "-d", device)


def _run(*command: str) -> str:
    """Run *command* and return what it prints.

    Raises:
        BadInput: the command fails.
    """
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except OSError as error:
        raise bad(PLACE, f"{command[0]} cannot be run ({error.strerror}); install util-linux") from None
    except subprocess.CalledProcessError as error:
        reason = [*error.stderr.strip().splitlines(), f"status {error.returncode}"][0]
        raise bad(PLACE, f"{' '.join(command)} failed: {reason}") from None


def steady_call_times(folder: Path, size: int) -> CallTimes:
    """Return `call_times` of *folder* and *size*, with more rounds while the times contradict each other.

    After `REPEATS` repetitions the times may still do so (`contradictions`).

    Raises:
        OSError: as `call_times` raises it.
    """
    times = call_times(folder, size)
    for _ in range(REPEATS):
        if not contradictions(times):
            break
        more = call_times(folder, size)
        times = CallTimes(
            *(Times(first.rounds + again.rounds) for first, again in zip(times, more, strict=True))
        )
    return times


def call_times(folder: Path, size: int) -> CallTimes:
    """Return the processor times (ns) of calls in *folder*, with files of *size* bytes, less the loop's time.

    *size* is a multiple of 1 MiB.  There are `ROUNDS` rounds, after a first one that does not count.  The
    files are removed.

    Raises:
        OSError: a file cannot be written, or has a name that is in use in *folder*.
    """
    rounds: list[tuple[float, ...]] = []
    page, mib = bytes(PAGE_BYTES), bytes(MIB)
    for _ in range(ROUNDS + 1):
        loop_ns = each_ns(size // PAGE_BYTES, lambda file, index: os.fspath(""), folder / "f")
        new_page = each_ns(
            size // PAGE_BYTES, lambda file, index: os.pwrite(file, page, index * PAGE_BYTES), folder / "f"
        )
        same_page = each_ns(size // PAGE_BYTES, lambda file, index: os.pwrite(file, page, 0), folder / "f")
        new_mib = each_ns(size // MIB, lambda file, index: os.pwrite(file, mib, index * MIB), folder / "f")
        create = create_ns(folder / "files") - 2 * loop_ns
        rounds.append((new_page - loop_ns, same_page - loop_ns, new_mib - loop_ns, create))
    return CallTimes(*(Times(times) for times in zip(*rounds[1:], strict=True)))


def each_ns(count: int, call: Callable[[int, int], object], path: Path) -> float:
    """Return the mean processor time (ns) of *count* calls with a new file at *path*, which is then removed.

    *call* takes the file's descriptor and the number of the call, from 0.  An existing *path* raises OSError.
    """
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL)
    try:

        def calls() -> None:
            for number in range(count):
                call(file, number)

        return busy_ns(calls) / count
    finally:
        os.close(file)
        path.unlink()


def create_ns(folder: Path) -> float:
    """Return the mean processor time (ns) of creat(2) and close(2) of an empty file in *folder*.

    *folder* is made for this, and then removed with the files; an existing *folder* raises OSError.
    """
    folder.mkdir()
    names = [f"{folder}/{sha1(b'%d' % number).hexdigest()}" for number in range(FILES)]
    flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC

    def create() -> None:
        for name in names:
            os.close(os.open(name, flags))

    took_ns = busy_ns(create)
    shutil.rmtree(folder)
    return took_ns / FILES


def busy_ns(work: Callable[[], object]) -> float:
    """Return the processor time (ns) of this thread, and of the kernel for it, while it does *work*."""
    began_ns = time.thread_time_ns()
    work()
    return time.thread_time_ns() - began_ns


def _sample() -> bytes:
    """Return the bytes that are compressed, which are equal on all machines."""
    digests = (sha1(b"%d" % number).hexdigest() for number in range(_TEXT_BYTES // 40))
    return "".join(digests).encode()


def write_cost(measurement: Measurement) -> WriteCost:
    """Return the parts of a write(2) on XFS; on ext4 if XFS was not measured.

    ``call``, ``folio`` and ``page`` are 0 or more, and sum to the time of a write(2) of one new page.
    ``block`` is what each further page of a write(2) of 1 MiB takes longer on ext4 than these parts, at least
    0.  It is 0 if XFS or ext4 was not measured.
    """
    kind = next(kind for kind in KINDS if kind in measurement.calls)
    parts, block = _parts(measurement.calls[kind]), 0.0
    if kind != "ext4" and "ext4" in measurement.calls:
        ext4 = measurement.calls["ext4"]
        block = max(0.0, _next_page_ns(ext4) - _next_page_ns_of(parts, ext4))
    return parts._replace(block=block)


def _next_page_ns(times: CallTimes) -> float:
    """Return the measured time by which each further page prolongs a write(2)."""
    return (times.new_mib.lowest - times.new_page.lowest) / (_MIB_PAGES - 1)


def _next_page_ns_of(cost: WriteCost, times: CallTimes) -> float:
    """Return the time by which *cost* has each further page prolong a write(2), which *times* measured."""
    return cost.page + cost.block + (0.0 if _large_folios(times) else cost.folio)


def _parts(times: CallTimes) -> WriteCost:
    """Return the parts of a write(2) of one new page: 0 or more, with its time as their sum.

    With large folios, a call of 1 MiB uses one folio.  Without large folios it uses one for each page; then a
    write into an existing page gives the share of the page.  Distributions backport large folios to older
    releases, so the measured times decide.
    """
    whole, next_page = round(times.new_page.lowest), _next_page_ns(times)
    if _large_folios(times):
        page = _clamp(next_page, whole)
        call = _clamp(times.same_page.lowest - page, whole - page)
    else:
        call = _clamp(whole - next_page, whole)
        page = _clamp(times.same_page.lowest - call, whole - call)
    return WriteCost(call, whole - call - page, page, 0.0)


def _clamp(part: float, whole: int) -> int:
    """Return the whole number from 0 to *whole* that is next to *part*."""
    return min(max(0, round(part)), whole)


def contradictions(times: CallTimes) -> list[str]:
    """Return a sentence for each pair of *times* that cannot both be true; an empty list if all can.

    The sentence compares the times of a write(2) of one new page, of a page written in place and of a page of
    1 MiB.  Without a disturbance no part of a write(2) is below 0 by more than `NOISE`.
    """
    whole, same_page, next_page = times.new_page.lowest, times.same_page.lowest, _next_page_ns(times)
    noise, larger, call_ns = NOISE * whole, _large_folios(times), whole - next_page
    new, rewrite = "a write(2) of 4 KiB behind the end", "a write(2) of 4 KiB in the same place"
    more = "a further page of a write(2) of 1 MiB"
    pairs = [
        (next_page > whole + noise, more, next_page, new, whole),
        (same_page > whole + noise, rewrite, same_page, new, whole),
        (times.new_mib.lowest < whole - noise, new, whole, "a write(2) of 1 MiB", times.new_mib.lowest),
        (larger and next_page > same_page + noise, more, next_page, rewrite, same_page),
        (not larger and call_ns > same_page + noise, f"the call of {new}", call_ns, rewrite, same_page),
    ]
    return [
        f"{longer} takes {long_ns / 1e3:.2f} us, and {shorter} {short_ns / 1e3:.2f} us"
        for wrong, longer, long_ns, shorter, short_ns in pairs
        if wrong
    ]


def _large_folios(times: CallTimes) -> bool:
    """Return whether a page of a large call takes less than half of a call with one page.

    On a Xeon Gold 6240 the ratio is at most 0.40 with large folios, and at least 0.75 without.
    """
    return times.new_mib.lowest * PAGE_BYTES / MIB < 0.5 * times.new_page.lowest


def create_factor(kind: str, times: CallTimes) -> float:
    """Return the median time of creat(2) with its close(2) in *times*, divided by the desk's time.

    Both are times on the filesystem *kind* (`KINDS`).
    """
    paths: Any = MACHINES[DESK].processors.paths
    writer = paths.filesystems[kind].writer
    desk_ns: int = writer.create_ns + paths.write.close_ns
    if kind == "xfs":
        desk_ns += writer.chunk_ns // _CHUNK_INODES
    return times.create.middle / desk_ns


def cost_lines(measurement: Measurement) -> list[str]:
    """Return the lines (TOML) of a machine file on the times of processors, with comments.

    A cost that was not measured is the desk's cost times the `create_factor` of its filesystem, with a range.
    A cost of no filesystem has the mean factor.
    """
    factors = {kind: create_factor(kind, times) for kind, times in measurement.calls.items()}
    mean, cost = sum(factors.values()) / len(factors), write_cost(measurement)
    program = measurement.program.lowest / DESK_PROGRAM_NS
    paths: Any = MACHINES[DESK].processors.paths
    lines = [
        *_found_lines(measurement, factors),
        "processors.writer_scale = 1.0",
        f"processors.program_scale = {_measured(_scale(program), 'bzip2')}",
        f"processors.flusher_scale = {_assumed(mean)}",
    ]
    for name, ns in (("call_ns", cost.call), ("folio_ns", cost.folio), ("page_ns", cost.page)):
        lines.append(f"processors.paths.write.{name} = {_measured(_time(ns), 'write(2)')}")
    close_ns = paths.write.close_ns * mean
    lines.append(f"processors.paths.write.close_ns = {_assumed(close_ns, is_time=True)}")
    for kind, factor in factors.items():
        writer = paths.filesystems[kind].writer
        for name in type(writer).model_fields:
            ns = getattr(writer, name) * factor
            value = _assumed(ns, is_time=True)
            if name == "create_ns":
                chunk_ns = writer.chunk_ns * factor / _CHUNK_INODES if kind == "xfs" else 0.0
                create_ns = max(0.0, measurement.calls[kind].create.middle - close_ns - chunk_ns)
                value = _measured(_time(create_ns), "creat(2), less the close(2)")
            elif name == "block_ns":
                why = (
                    "write(2) of 1 MiB on ext4, less XFS"
                    if "xfs" in measurement.calls
                    else "in the time of a page"
                )
                value = _measured(_time(cost.block), why)
            lines.append(f"processors.paths.filesystems.{kind}.writer.{name} = {value}")
    return lines


def with_captured(measured: Sequence[str], captured: Sequence[str]) -> list[str]:
    """Return the lines *measured* by `cost_lines`, then those of `costs.Scales.lines` in *captured*.

    ``writer_scale`` of the capture is dropped, because the measurement has the writer's costs.  The captured
    ``flusher_scale`` replaces the measured one.  Without *captured* lines, all *measured* lines stay.
    """
    of_flusher = [line for line in captured if not line.startswith("processors.writer_scale")]
    if not of_flusher:
        return list(measured)
    return [line for line in measured if not line.startswith("processors.flusher_scale")] + of_flusher


def _found_lines(measurement: Measurement, factors: dict[str, float]) -> list[str]:
    """Return comment lines with the measured times, and with what is wrong with them."""
    lines = [f"# Measured on Linux {measurement.release}: the lowest of all rounds; for creat(2) the median."]
    cost = write_cost(measurement)
    for kind, times in measurement.calls.items():
        kind_cost = cost if kind == "ext4" else cost._replace(block=0.0)
        page, mib = (_by_keys(pages, kind_cost, times) for pages in (1, _MIB_PAGES))
        lines += [
            f"#   {kind}, write(2) of 4 KiB behind the end: {times.new_page.text()}{page}",
            f"#   {kind}, write(2) of 4 KiB in the same place: {times.same_page.text()}",
            f"#   {kind}, write(2) of 1 MiB behind the end: {times.new_mib.text()}{mib}",
            f"#   {kind}, creat(2) and close(2): {times.create.text()}, {factors[kind]:.2f} times the desk's",
        ]
        lines += [
            f"#   {kind} was disturbed, measure again on an idle machine: {why}"
            for why in contradictions(times)
        ]
    for kind in KINDS:
        if kind not in measurement.calls:
            lines.append(f"#   {kind}: the desk's, because mkfs.{kind} is missing ({_PACKAGES[kind]})")
    return [*lines, f"#   bzip2 of 1 MiB: {measurement.program.text()}"]


def _by_keys(pages: int, cost: WriteCost, times: CallTimes) -> str:
    """Return the time that the keys of *cost* give a write(2) of *pages*, if *times* has another one.

    The keys have the three times of one filesystem, and only one time of the other.
    """
    measured_ns = (times.new_page if pages == 1 else times.new_mib).lowest
    first_ns = cost.call + cost.folio + cost.page + cost.block
    keys_ns = first_ns + (pages - 1) * _next_page_ns_of(cost, times)
    if abs(keys_ns - measured_ns) <= SAME * measured_ns:
        return ""
    return f"; the keys below give {keys_ns / 1e3:.2f} us"


def _measured(value: str, method: str) -> str:
    return f"{{ measured = {value}, why = {json.dumps(f'wbsim {PLACE}: {method}')} }}"


def _assumed(value: float, *, is_time: bool = False) -> str:
    """Return an assumed *value* with its range: a time in ns or a scale, from the ratio of creat(2)."""
    low, middle, high = (
        _time(number) if is_time else _scale(number) for number in (value / _SPREAD, value, value * _SPREAD)
    )
    return (
        f"{{ assumed = {middle}, low = {low}, high = {high},"
        f' why = "wbsim {PLACE}: the time on the desk, times the ratio of creat(2)" }}'
    )


def _time(ns: float) -> str:
    return f'"{round(ns)} ns"'


def _scale(factor: float) -> str:
    return f"{factor:.3f}"
