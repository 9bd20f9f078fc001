"""Measured times of system calls, which become parts of a cost and lines of a machine file."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.machines import measure
from wbsim.experiments.machines.measure import (
    CallTimes,
    Measurement,
    Times,
    cost_lines,
    with_captured,
    write_cost,
)
from wbsim.models.catalogue.machines import MACHINES


def times(new_page: float, same_page: float, new_mib: float, create: float = 0.0) -> CallTimes:
    """Return rounds with these times as the lowest, and with *create* as the median."""
    writes = (Times((2 * of, of, 9 * of)) for of in (new_page, same_page, new_mib))
    return CallTimes(*writes, Times((0.5 * create, create, 9 * create)))


def measured(release: str = "6.18.44", **calls: CallTimes) -> Measurement:
    """Return a measurement of *calls*, in which a program is half as fast as on the desk."""
    return Measurement(release, calls, Times((2 * measure.DESK_PROGRAM_NS,)))


def test_call_time_is_divided_into_parts_with_large_folios() -> None:
    """A new page of XFS takes 3 000 ns.

    * call: 1 000 ns
    * folio: 1 700 ns
    * page: 300 ns, like each of 255 more pages

    A block of ext4 takes 500 ns more than a page of XFS.
    """
    xfs, ext4 = times(3_000, 1_300, 3_000 + 255 * 300), times(3_500, 1_000, 3_500 + 255 * 800)
    assert write_cost(measured(xfs=xfs, ext4=ext4)) == pytest.approx((1_000, 1_700, 300, 500))
    assert write_cost(measured(xfs=xfs)) == pytest.approx((1_000, 1_700, 300, 0))
    assert write_cost(measured(ext4=ext4)) == pytest.approx((200, 2_500, 800, 0))


def test_call_time_is_divided_into_parts_without_large_folios() -> None:
    """Each of 255 more pages takes 2 000 ns, of which its folio takes 1 300 ns and the page 700 ns.

    A page that is written again takes 1 300 ns, of which the call takes 600 ns.
    """
    xfs = times(2_600, 1_300, 2_600 + 255 * 2_000)
    ext4 = times(3_000, 1_300, 3_000 + 255 * 2_400)
    assert write_cost(measured("5.14.0-503.el9", xfs=xfs, ext4=ext4)) == pytest.approx((600, 1_300, 700, 400))


def test_no_part_is_negative() -> None:
    """Rounds with any scatter give parts of 0 or more."""
    for of in (times(1_000, 3_000, 100), times(3_000, 100, 4_000_000), times(1_000, 1_000, 256_000)):
        cost = write_cost(measured(xfs=of, ext4=of))
        assert min(cost) >= 0.0, cost


def test_cost_lines_are_the_toml_of_a_machine() -> None:
    """A creat(2) that takes twice as long as on the desk doubles all costs that were not measured."""
    paths: Any = MACHINES["desk-vm"].processors.paths
    writer = paths.filesystems["xfs"].writer
    create_ns = 2 * (writer.create_ns + paths.write.close_ns + writer.chunk_ns // 64)
    lines = cost_lines(measured(xfs=times(3_000, 1_300, 79_500, create_ns)))
    found = tomllib.loads("\n".join(lines))["processors"]
    assert (found["writer_scale"], found["program_scale"]["measured"]) == (1.0, 2.0)
    assert (found["flusher_scale"]["assumed"], found["flusher_scale"]["low"]) == (2.0, 1.333)
    assert found["paths"]["write"]["call_ns"]["measured"] == "1000 ns"
    assert found["paths"]["write"]["close_ns"]["assumed"] == f"{2 * paths.write.close_ns} ns"
    of_xfs = found["paths"]["filesystems"]["xfs"]["writer"]
    assert of_xfs["create_ns"]["measured"] == f"{2 * writer.create_ns} ns"
    assert of_xfs["chunk_ns"]["assumed"] == f"{2 * writer.chunk_ns} ns"
    assert "ext4" not in found["paths"]["filesystems"]
    assert lines[1] == "#   xfs, write(2) of 4 KiB behind the end: 3.00 us (median 6.00, highest 27.00)"
    assert lines[0].startswith("# Measured on Linux 6.18.44")


def test_machine_file_with_cost_lines_is_read(tmp_path: Path) -> None:
    """Every number of the lines arrives in the scenario."""
    ext4 = times(3_500, 1_000, 3_500 + 255 * 800, 20_000)
    lines = cost_lines(measured(xfs=times(3_000, 1_300, 79_500, 20_000), ext4=ext4))
    (tmp_path / "box.toml").write_text("\n".join(['like = "desk-vm"', *lines]))
    text = """
title = "a machine that was measured"
[scenario]
machine.like = "./box.toml"
kernel.like = "6.18"
machine.disks.d = { like = "pm9a3" }
mounts.m = { like = "ext4", disk = "d", at = "/" }
programs.p = "dd if=/dev/zero of=/f bs=1M count=1"
"""
    (case,) = parse(text, str(tmp_path / "x.toml")).cases
    processors: Any = case.scenario.machine.processors
    write, writer = processors.paths.write, processors.paths.filesystems["ext4"].writer
    assert (write.call_ns, write.folio_ns, write.page_ns, writer.block_ns) == (1_000, 1_700, 300, 500)
    assert processors.program_scale == 2.0
    assert processors.given("program_scale").origin.value == "measured"
    assert write.given("folio_ns").origin.value == "measured"


def test_measure_refuses_what_it_cannot_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another machine, no root, no mkfs, no memory and large pages give one line each, and status 2."""

    def said(*arguments: str) -> str:
        assert main(["describe-machine", "--measure", *arguments]) == 2
        return capsys.readouterr().err

    assert "--measure: measures this machine, not /tmp; leave one of them out" in said("/tmp")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "describe-machine --measure: needs root to mount loop devices; run the command with sudo" in said()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "which", lambda name: None)
        assert "mkfs.xfs and mkfs.ext4 are missing; install xfsprogs or e2fsprogs" in said()
    monkeypatch.setattr(shutil, "which", lambda name: name)
    with monkeypatch.context() as patched:
        patched.setattr(measure, "available_bytes", lambda: 255 << 20)
        assert "MiB of memory are available; free some, to have 256 MiB" in said()
    monkeypatch.setattr(os, "sysconf", lambda name: 65_536)
    assert "pages have 65536 B on this machine; wbsim models only pages of 4 KiB" in said()


def test_filesystem_without_measurement_is_named() -> None:
    """The lines state that XFS has the desk's costs and that ext4's blocks are in the time of its pages."""
    lines = cost_lines(measured(ext4=times(3_500, 1_000, 3_500 + 255 * 800, 20_000)))
    assert "#   xfs: the desk's, because mkfs.xfs is missing (xfsprogs)" in lines
    (block,) = (line for line in lines if "block_ns" in line)
    assert '"0 ns"' in block
    assert block.endswith('in the time of a page" }')


def test_capture_adds_the_costs_of_the_flusher() -> None:
    """The capture's costs of flusher and block layer replace the assumed scale.

    Its writer_scale is not used.
    """
    lines = ["processors.writer_scale = 1.0", "processors.flusher_scale = 2.0", "processors.p = 3"]
    captured = ["processors.writer_scale = 0.5", "processors.flusher_scale = 1.5", "processors.b = 4"]
    assert with_captured(lines, captured) == [lines[0], lines[2], *captured[1:]]
    assert with_captured(lines, []) == lines


def test_describe_machine_prints_the_measurement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The machine file has the lines of the measurement, and no assumed writer_scale."""
    found = measured(xfs=times(3_000, 1_300, 79_500, 20_000))
    monkeypatch.setattr(measure, "measure", lambda: found)
    assert main(["describe-machine", "--measure"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert set(cost_lines(found)) <= set(printed)
    assert [line for line in printed if "writer_scale" in line] == ["processors.writer_scale = 1.0"]


def test_busy_mount_is_undone_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """umount(8) fails, so `umount -l` removes the mount after its last user."""
    begun: list[str] = []

    def run(command: list[str], **how: Any) -> Any:
        begun.append(" ".join(command))
        return subprocess.CompletedProcess(command, 0 if "-l" in command else 32, "", "busy")

    monkeypatch.setattr(subprocess, "run", run)
    measure.umount(Path("/x"))
    assert begun == ["umount /x", "umount -l /x"]


def test_full_filesystem_is_one_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error names the filesystem and has the system's message."""

    def refuse(folder: Path, size: int) -> CallTimes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(measure, "mounted", lambda kind: nullcontext(tmp_path))
    monkeypatch.setattr(measure, "call_times", refuse)
    with pytest.raises(BadInput, match="a file on xfs cannot be written: No space left on device"):
        measure.measure()


def test_refused_mount_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the first line of mount(8), and no folder is left."""
    begun: list[list[str]] = []

    def refuse(command: list[str], **how: Any) -> Any:
        begun.append(list(command))
        raise subprocess.CalledProcessError(32, command, stderr="mount: permission denied\nmore")

    monkeypatch.setattr(subprocess, "run", refuse)
    with (
        pytest.raises(BadInput, match=r"mount -t tmpfs .* failed: mount: permission denied$"),
        measure.mounted("xfs"),
    ):
        pass
    assert [command[0] for command in begun] == ["mount"]
    assert not Path(begun[0][-1]).exists()


@pytest.mark.parametrize("fails", [True, False])
def test_every_mount_is_undone(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """Mounts and devices are removed in reverse order, even if the last mount fails."""
    begun: list[str] = []

    def run(command: list[str], **how: Any) -> Any:
        begun.append(" ".join(Path(word).name if word.startswith("/tmp") else word for word in command[:3]))
        if command[0] == "umount":
            for left in Path(command[-1]).iterdir():
                left.unlink()
        if fails and list(command[:3]) == ["mount", "-o", "noatime"]:
            raise subprocess.CalledProcessError(1, command, stderr="no")
        return subprocess.CompletedProcess(command, 0, "/dev/loop9\n", "")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(BadInput) if fails else nullcontext(), measure.mounted("ext4"):
        begun.append("used")
    assert begun == [
        "mount -t tmpfs", "losetup -f --show", "mkfs.ext4 -q /dev/loop9", "mount -o noatime",
        *([] if fails else ["used", "umount files"]), "losetup -d /dev/loop9", "umount memory",
    ]  # fmt: skip


def test_time_of_an_empty_call_is_taken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty call takes 100 ns, which are taken off once from each write(2) and twice from a creat(2)."""
    each = iter((measure.ROUNDS + 1) * [100.0, 3_100.0, 1_100.0, 90_100.0])
    monkeypatch.setattr(measure, "each_ns", lambda count, call, path: next(each))
    monkeypatch.setattr(measure, "create_ns", lambda folder: 20_200.0)
    found = measure.call_times(tmp_path, 4 << 20)
    assert [of.rounds for of in found] == [
        (of,) * measure.ROUNDS for of in (3_000.0, 1_000.0, 90_000.0, 20_000.0)
    ]


def test_times_are_those_of_this_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sleep and the time of other threads do not count."""
    clock = iter([1_000, 6_000])
    monkeypatch.setattr(measure.time, "thread_time_ns", lambda: next(clock))
    assert measure.busy_ns(lambda: None) == 5_000


def test_calls_are_timed_on_files_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every round has times, and no file that was written is left."""
    monkeypatch.setattr(measure, "FILES", 20)
    found = measure.call_times(tmp_path, 4 << 20)
    assert [len(of.rounds) for of in found] == [measure.ROUNDS] * 4
    assert found.new_mib.lowest > found.new_page.lowest > 0
    assert found.create.lowest > 0
    assert list(tmp_path.iterdir()) == []
