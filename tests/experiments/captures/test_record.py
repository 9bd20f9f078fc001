"""Recording on this machine: all settings are restored, and the simulator decides as this kernel does."""

from __future__ import annotations

import gzip
import lzma
import os
import platform
import random
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock
from pathlib import Path
from shutil import which
from tempfile import gettempdir
from typing import Any

import pytest

from tests.experiments.sweeps.test_disturbed import hear_all
from wbsim.experiments.captures import record as recorder
from wbsim.experiments.captures.conditions import Options, conditions_of
from wbsim.experiments.captures.merge_decisions import steps_of
from wbsim.experiments.captures.processor import flusher_time
from wbsim.experiments.captures.reader import open_capture
from wbsim.experiments.captures.replay import replay
from wbsim.experiments.cli import main
from wbsim.experiments.config.problems import BadInput
from wbsim.models.catalogue.kernels import PLUG_RULES

NEEDED = ("mkfs.xfs", "fs_mark", "losetup", "mount", "umount")


def test_capture_without_root_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status is 2, the error has the remedy, and no file is written."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["capture", "--out", str(tmp_path / "c"), "--", "true"]) == 2
    assert "needs root" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_capture_without_tracefs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error has the reason for the failed mount."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(recorder, "TRACEFS", tmp_path / "nowhere")
    assert main(["capture", "--out", str(tmp_path / "c"), "--", "true"]) == 2
    assert "tracefs cannot be mounted" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def mounted() -> bool:
    return (recorder.TRACEFS / "events").is_dir()


@pytest.fixture
def alone() -> Iterator[None]:
    """Exclude other tests that record, because each mounts and unmounts tracefs."""
    with (Path(gettempdir()) / "wbsim-tests-record.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        yield


@pytest.fixture
def disk(tmp_path: Path, alone: None) -> Iterator[tuple[str, Path]]:
    """Yield the device number and the mount point of a small XFS on a loop device."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if "tracefs" not in Path("/proc/filesystems").read_text():
        pytest.skip("needs a kernel with tracefs")
    missing = [name for name in NEEDED if which(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    image, there = tmp_path / "image", tmp_path / "xfs"
    there.mkdir()
    with image.open("wb") as file:
        file.truncate(1 << 30)
    attached = subprocess.run(["losetup", "-f", "--show", image], capture_output=True, text=True, check=False)
    if attached.returncode != 0:
        pytest.skip(f"no loop device: {attached.stderr.strip()}")
    device = attached.stdout.strip()
    try:
        subprocess.run(["mkfs.xfs", "-q", "-d", "agcount=4", device], check=True)
        mounted = subprocess.run(["mount", device, there], capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            pytest.skip(f"no mount: {mounted.stderr.strip()}")
        try:
            number = os.stat(device).st_rdev
            yield f"{os.major(number)}:{os.minor(number)}", there
        finally:
            subprocess.run(["umount", there], check=True)
    finally:
        subprocess.run(["losetup", "-d", device], check=True)


def test_capture_of_this_kernel_is_replayed_without_mismatch(
    disk: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The capture is fs_mark on a new XFS.  After the recording tracefs is mounted only if it was before."""
    device, there = disk
    out = tmp_path / "live.trace.xz"
    before = mounted()
    monkeypatch.chdir(there)  # fs_mark takes no long paths
    fs_mark = shlex.split("fs_mark -S0 -n 200 -s 4096 -L 2 -D 100 -d 0 -d 1 -d 2 -d 3")
    assert main(["capture", "--out", str(out), "--device", device, "--", *fs_mark]) == 0
    assert mounted() == before
    capture = open_capture(out)
    of = conditions_of(capture, Options())
    verdict = replay(
        steps_of(capture.events(), of.scheduler), PLUG_RULES[of.era], of.limits, of.scheduler, of.device
    )
    assert verdict.decisions_total > 500
    assert verdict.mismatches == []
    assert verdict.events_lost == 0


def test_capture_with_cpu_gives_costs_of_this_machine(
    disk: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flusher takes 1 to 100 us a file, and an event takes less than 5 us."""
    device, there = disk
    out = tmp_path / "cpu.trace.xz"
    monkeypatch.chdir(there)
    fs_mark = shlex.split("fs_mark -k -S0 -n 500 -s 4096 -d 0 -d 1")
    assert main(["capture", "--cpu", "--out", str(out), "--device", device, "--", *fs_mark]) == 0
    found = flusher_time(out)
    assert (found.recording.filesystem, found.recording.mount_point) == ("xfs", str(there))
    assert 1_000 <= found.files <= found.pages < 1_010  # the superblock's own inodes, too
    assert 1_000 < found.file_ns < 100_000
    assert 0 < found.recording.event_ns < 5_000
    with lzma.open(out, "rt") as text:
        assert "tracing_mark_write" not in text.read()
    assert 1e6 < found.recording.program_ns < 1e9


def test_interrupted_recording_leaves_nothing(disk: tuple[str, Path], tmp_path: Path) -> None:
    """The command sends a signal to the recorder.

    No file and no instance is left, tracefs is as before, and the processes of the command have ended.
    """
    device, _ = disk
    before = mounted()
    out = tmp_path / "out" / "c.trace"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        stops = f"sleep {4242 + number} & kill -{number.value} $PPID; wait"
        arguments = ["capture", "--out", str(out), "--device", device, "--", "sh", "-c", stops]
        ended = subprocess.run(
            [sys.executable, "-m", "wbsim.experiments.cli", *arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
            cwd=Path(__file__).parents[3],
            preexec_fn=hear_all,
        )  # fmt: skip
        assert ended.returncode == 128 + number, ended.stderr
        assert ended.stderr == "wbsim: interrupted; nothing was written\n"
        begun = ["pgrep", "-fx", f"sleep {4242 + number}"]
        assert subprocess.run(begun, check=False, capture_output=True).returncode == 1
    assert not list(out.parent.iterdir())
    assert not list(recorder.TRACEFS.glob("instances/wbsim-*"))
    assert mounted() == before


@pytest.mark.fullsize
def test_signal_at_any_moment_of_a_recording_restores_tracefs(disk: tuple[str, Path], tmp_path: Path) -> None:
    """Each of 50 signals gives the conventional status, and a complete capture or none.

    No process of the command is left, and tracefs is as before.
    """
    device, there = disk
    before, out, dice = mounted(), tmp_path / "out" / "c.trace.xz", random.Random(50)
    for turn in range(50):
        number = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[turn % 3]
        stay = f"sleep {5_000 + turn} & fs_mark -S0 -n 200 -s 4096 -L 3 -d {turn}; sleep 0.2; kill $!"
        arguments = ["capture", "--out", str(out), "--device", device, "--", "sh", "-c", stay]
        with subprocess.Popen(
            [sys.executable, "-m", "wbsim.experiments.cli", *arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=hear_all, cwd=there,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        ) as process:  # fmt: skip
            after_s = dice.uniform(0.05, 2.2)
            with suppress(subprocess.TimeoutExpired):
                process.wait(after_s)
            process.send_signal(number)
            _, told = process.communicate(timeout=60)
        case = f"{number.name} after {after_s:.3f} s: {process.returncode}, {told}"
        assert process.returncode in (0, 128 + number, -number), case
        assert "Traceback" not in told, case
        begun = ["pgrep", "-fx", f"sleep {5_000 + turn}"]
        assert subprocess.run(begun, check=False, capture_output=True).returncode == 1, case
        found = [*out.parent.iterdir()] if out.parent.is_dir() else []
        assert found in ([], [out]), case
        if found:
            steps_of(open_capture(out).events(), "mq-deadline")
            out.unlink()
        assert not list(recorder.TRACEFS.glob("instances/wbsim-*")), case
        assert mounted() == before, case


# -- piece by piece, on a tracefs of plain files ---------------------------------------------------------


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tracefs whose instances have the files that the kernel gives them; all events but one exist."""
    root = tmp_path / "tracing"
    (root / "instances").mkdir(parents=True)
    for event in recorder.EVENTS[:-1]:
        (root / "events" / event).mkdir(parents=True)
    mkdir = Path.mkdir

    def made(path: Path, *parts: Any, **options: Any) -> None:
        mkdir(path, *parts, **options)
        if path.parent == root / "instances":
            for event in recorder.EVENTS:
                (path / "events" / event).mkdir(parents=True)

    monkeypatch.setattr(Path, "mkdir", made)
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)
    monkeypatch.setattr(recorder, "TRACEFS", root)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return root


def test_recorder_enables_block_and_writeback_events() -> None:
    """The events show a bio in the block layer, and the begin, the files and the end of a flusher's turn."""
    block = "bio_queue split getrq bio_backmerge bio_frontmerge plug unplug rq_insert rq_issue rq_merge"
    block += " rq_complete"
    turns = "start written single_inode"
    assert list(recorder.EVENTS) == [
        *(f"block/block_{name}" for name in block.split()),
        *(f"writeback/writeback_{name}" for name in turns.split()),
    ]


def test_instance_records_the_events_that_exist(plain: Path) -> None:
    """The instance has the requested buffer for each processor, and is removed also after an error."""
    with recorder.own_instance(plain, 3) as instance:
        assert instance.parent == plain / "instances"
        assert (instance / "buffer_size_kb").read_text() == "3072"
        assert (instance / "tracing_on").read_text() == "1"
        enabled = [event for event in recorder.EVENTS if (instance / "events" / event / "enable").exists()]
        assert enabled == list(recorder.EVENTS[:-1])
        assert (instance / "events" / enabled[0] / "enable").read_text() == "1"
    assert not instance.exists()
    with pytest.raises(RuntimeError), recorder.own_instance(plain, 3):
        raise RuntimeError
    assert list((plain / "instances").iterdir()) == []
    shutil.rmtree(plain / "events" / "block" / "block_bio_queue")
    with pytest.raises(BadInput, match="has no block events; the kernel needs CONFIG_BLK_DEV_IO_TRACE"):
        recorder.own_instance(plain, 3).__enter__()


TRACE = """\
# tracer: nop
  x-1 [000] ..... 1.0: block_bio_queue: 8,0 W 0 + 8 [x]
  x-1 [000] ..... 1.0: block_bio_queue: 7,0 W 0 + 8 [x]
CPU:1 [LOST 5 EVENTS]
CPU:0 [LOST EVENTS]
CPU:0 [LOST 2 EVENTS]
  x-1 [000] ..... 1.0: block_bio_queue: 7,0 W 8 + 8 [\udcff]
"""


def test_bios_and_losses_are_counted(tmp_path: Path) -> None:
    """Bios are counted by device.  A capture without bios is refused."""
    trace = tmp_path / "trace"
    trace.write_text(TRACE, errors="surrogateescape")
    assert recorder.count_bios(trace) == ({"7,0": 2, "8,0": 1}, 7)
    trace.write_text("# tracer: nop\n")
    with pytest.raises(BadInput, match="submitted no bio; give a command that writes to a disk"):
        recorder.count_bios(trace)


def test_the_first_line_has_the_queue_s_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler in brackets is in use.  Memory is printed in whole GiB."""
    for number, name in enumerate(recorder.LIMITS):
        (tmp_path / name).write_text(f"{number}\n")
    (tmp_path / "scheduler").write_text("none [mq-deadline] kyber\n")
    monkeypatch.setattr(recorder, "queue_of", lambda device: tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 3 << 18, "SC_PAGE_SIZE": 4_096}.__getitem__)
    assert recorder.limits("7,0") == (
        f"kernel {platform.release()} scheduler mq-deadline nomerges 1 max_sectors_kb 2 max_segments 3"
        " max_segment_size 4 discard_max_bytes 5 nr_requests 6 cpus 6 mem 3GiB device 7,0"
    )
    (tmp_path / "scheduler").write_text("none\n")
    assert " scheduler none nomerges" in recorder.limits("7,0")


def test_missing_device_is_refused() -> None:
    """The error asks for a disk that exists."""
    with pytest.raises(BadInput, match="999,999 has no queue in /sys/dev/block; give the MAJ:MIN of a disk"):
        recorder.queue_of("999,999")


@pytest.mark.parametrize(("name", "opened"), [("a.gz", gzip.open), ("a.xz", lzma.open), ("a.trace", open)])
def test_capture_has_limits_command_and_complete_trace(
    name: str, opened: Any, plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trace is copied byte by byte.

    The result has the status of the command, and the device of most bios unless one is given.
    """
    monkeypatch.setattr(recorder, "limits", lambda device: f"limits of {device}")
    monkeypatch.setattr(os, "sync", lambda: None)
    instances: list[Path] = []
    instance_of = recorder.own_instance

    @contextmanager
    def recorded(root: Path, buffer_mib: int, events: Sequence[str]) -> Iterator[Path]:
        assert events == recorder.EVENTS
        with instance_of(root, buffer_mib) as instance:
            instances.append(instance)
            (instance / "trace").write_text(TRACE, errors="surrogateescape")
            yield instance
            assert (instance / "tracing_on").read_text() == "0"

    monkeypatch.setattr(recorder, "own_instance", recorded)
    out = tmp_path / name
    found = recorder.record(out, ["sh", "-c", "exit 3"], 5)
    assert found == recorder.Recorded(3, "7,0", 2, 1, 7)
    with opened(out, "rt", errors="surrogateescape") as file:
        assert file.read() == f"# limits of 7,0\n# command: sh -c 'exit 3'\n{TRACE}"
    monkeypatch.setattr(recorder, "queue_of", lambda device: None)
    assert recorder.record(out, ["true"], 5, "8,0") == recorder.Recorded(0, "8,0", 1, 2, 7)
    with pytest.raises(BadInput, match="no-such-command is not an executable command"):
        recorder.record(out, ["no-such-command"], 5)


@pytest.mark.source
def test_filesystem_is_found_by_the_exact_device_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number 7:0 does not match 17:0 or 7:01, which come first.

    A device without a filesystem gives an empty text.
    """
    (tmp_path / "mountinfo").write_text(
        "30 1 17:0 / /other rw,relatime shared:1 - ext4 /dev/a rw\n"
        "31 1 7:01 / /second rw - btrfs /dev/b rw\n"
        "32 1 7:0 / /mnt/x rw,relatime shared:2 - xfs /dev/loop0 rw\n"
    )
    monkeypatch.setattr(recorder, "Path", lambda _: tmp_path / "mountinfo")
    assert recorder.mounted("7,0") == "filesystem xfs at /mnt/x"
    assert recorder.mounted("8,0") == ""
