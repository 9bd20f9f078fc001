"""Record on this machine: everything is put back, and the simulator decides as this kernel does."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from experiments.captures import record as recorder
from experiments.captures.conditions import Options, conditions_of
from experiments.captures.reader import open_capture
from experiments.captures.replay import replay
from experiments.captures.story import story_of
from experiments.cli import main
from models.catalogue.kernels import PLUG_RULES

NEEDED = ("mkfs.xfs", "fs_mark", "losetup", "mount", "umount")


def test_without_root_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2, the remedy, and no file."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["capture", "--out", str(tmp_path / "c"), "--", "true"]) == 2
    assert "needs root" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_tracefs_it_says_what_the_kernel_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mount that fails is told with its reason."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(recorder, "TRACEFS", tmp_path / "nowhere")
    assert main(["capture", "--out", str(tmp_path / "c"), "--", "true"]) == 2
    assert "tracefs cannot be mounted" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def _mounted() -> bool:
    return (recorder.TRACEFS / "events").is_dir()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A small XFS on a loop device: its number, and where it is mounted."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
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


def test_this_machines_kernel_is_replayed_equal(
    disk: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fs_mark on a fresh XFS: every decision and every full flush, and no trace of the recording is left."""
    device, there = disk
    out = tmp_path / "live.trace.xz"
    before = _mounted()
    monkeypatch.chdir(there)  # fs_mark takes no long paths
    fs_mark = shlex.split("fs_mark -S0 -n 200 -s 4096 -L 2 -D 100 -d 0 -d 1 -d 2 -d 3")
    try:
        assert main(["capture", "--out", str(out), "--device", device, "--", *fs_mark]) == 0
    except recorder.BadInput as error:
        pytest.skip(str(error))
    assert _mounted() == before
    capture = open_capture(out)
    of = conditions_of(capture, Options())
    verdict = replay(
        story_of(capture.events(), of.scheduler), PLUG_RULES[of.era], of.limits, of.scheduler, of.device
    )
    assert verdict.decisions_total > 500
    assert verdict.mismatches == []
    assert verdict.events_lost == 0


def test_an_interrupted_recording_leaves_nothing(disk: tuple[str, Path], tmp_path: Path) -> None:
    """SIGTERM in the middle, sent by the command itself: no file, no instance, tracefs as before."""
    device, _ = disk
    before = _mounted()
    out = tmp_path / "out" / "c.trace"
    stops = "kill -TERM $PPID"
    arguments = ["capture", "--out", str(out), "--device", device, "--", "sh", "-c", stops]
    command = [sys.executable, "-m", "experiments.cli", *arguments]
    ended = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[3], timeout=60, check=False
    )
    assert ended.returncode == 130, ended.stderr
    assert "interrupted" in ended.stderr
    assert not list(out.parent.iterdir())
    assert not list(recorder.TRACEFS.glob("instances/wbsim-*"))
    assert _mounted() == before
