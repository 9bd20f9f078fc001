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
from hypothesis import example, given
from hypothesis import strategies as st

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


NS = st.integers(1, 10_000).map(float)


@given(new_page=NS, same_page=NS, next_page=st.integers(-2_000, 10_000), ext4_page=NS)
@example(new_page=2_404.0, same_page=511.0, next_page=4_525, ext4_page=2_404.0)
@example(new_page=1_000.0, same_page=3_000.0, next_page=100, ext4_page=1_000.0)
def test_parts_sum_to_the_measured_write(
    new_page: float, same_page: float, next_page: int, ext4_page: float
) -> None:
    """Rounds with any scatter give parts of 0 or more, whose sum is the time of a write(2) of a new page."""
    xfs = times(new_page, same_page, max(1, new_page + 255 * next_page))
    ext4 = times(ext4_page, same_page, ext4_page + 255 * ext4_page / 2)
    for found in (measured(xfs=xfs), measured(xfs=xfs, ext4=ext4), measured(ext4=xfs)):
        cost = write_cost(found)
        assert min(cost) >= 0.0, cost
        assert cost.call + cost.folio + cost.page == new_page


DISTURBED = {
    "a further page of a write(2) of 1 MiB takes 4.50 us,"
    " and a write(2) of 4 KiB behind the end 2.40 us": times(2_400, 511, 2_400 + 255 * 4_500),
    "a write(2) of 4 KiB in the same place takes 2.80 us,"
    " and a write(2) of 4 KiB behind the end 2.40 us": times(2_400, 2_800, 2_400 + 255 * 700),
    "a write(2) of 4 KiB behind the end takes 90.00 us, and a write(2) of 1 MiB 30.00 us": times(
        90_000, 1_000, 30_000
    ),
    "a further page of a write(2) of 1 MiB takes 1.00 us,"
    " and a write(2) of 4 KiB in the same place 0.70 us": times(2_400, 700, 2_400 + 255 * 1_000),
    "the call of a write(2) of 4 KiB behind the end takes 1.00 us,"
    " and a write(2) of 4 KiB in the same place 0.70 us": times(2_400, 700, 2_400 + 255 * 1_400),
}
QUIET = {
    "large folios": times(2_400, 1_300, 2_400 + 255 * 300),
    "one folio a page": times(2_400, 1_300, 2_400 + 255 * 2_000),
    "a page in the cache is a little faster": times(2_400, 800, 2_400 + 255 * 1_000),
}


@pytest.mark.parametrize("sentence", DISTURBED)
def test_times_that_contradict_each_other_are_named(sentence: str) -> None:
    """The comments have one sentence with both times, and what to do."""
    lines = cost_lines(measured(xfs=DISTURBED[sentence]))
    assert [line for line in lines if "disturbed" in line] == [
        f"#   xfs was disturbed, measure again on an idle machine: {sentence}"
    ]


@pytest.mark.parametrize("times_of", QUIET)
def test_times_without_a_contradiction_are_not_called_disturbed(times_of: str) -> None:
    """A part that comes out negative by less than a tenth of the write is noise."""
    assert not [line for line in cost_lines(measured(ext4=QUIET[times_of])) if "disturbed" in line]


@pytest.mark.parametrize(("disturbed", "runs"), [(0, 1), (1, 2), (2, 3), (9, 3)])
def test_disturbed_rounds_are_repeated(
    disturbed: int, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds follow until the lowest times agree, at most two more times; all of them count."""
    bad, good = next(iter(DISTURBED.values())), QUIET["large folios"]
    rounds = iter([*[bad] * disturbed, good])
    monkeypatch.setattr(measure, "call_times", lambda folder, size: next(rounds))
    found = measure.steady_call_times(tmp_path, 1 << 20)
    assert [len(of.rounds) for of in found] == [3 * runs] * 4
    assert bool(measure.contradictions(found)) == (disturbed == 9)


def test_comment_has_the_range_of_the_rounds() -> None:
    """A time that the keys cannot have is followed by the time that they have.

    A page of 1 MiB can take at most the 2.40 us of a write of 4 KiB, so 1 MiB takes 614.40 us.
    On ext4, a page of 1 MiB takes 500 ns more than by these keys.  A write of 4 KiB takes 400 ns more.
    """
    xfs = times(2_400, 511, 2_400 + 255 * 4_500)
    ext4 = times(2_800, 511, 2_800 + 255 * 2_900)
    lines = cost_lines(measured(xfs=xfs, ext4=ext4))
    first, _, mib = (line for line in lines if line.startswith("#   xfs, write(2)"))
    assert first == (
        "#   xfs, write(2) of 4 KiB behind the end: 2.40 us (3 rounds from 2.40 to 21.60, median 4.80)"
    )
    assert mib == (
        "#   xfs, write(2) of 1 MiB behind the end: 1.15 ms (3 rounds from 1.15 to 10.35, median 2.30)"
        "; the keys below give 614.40 us"
    )
    first, _, mib = (line for line in lines if line.startswith("#   ext4, write(2)"))
    assert first.endswith("median 5.60); the keys below give 2.90 us")
    assert mib.endswith("us (3 rounds from 742.30 to 6680.70, median 1484.60)")


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
    assert lines[1] == (
        "#   xfs, write(2) of 4 KiB behind the end: 3.00 us (3 rounds from 3.00 to 27.00, median 6.00)"
    )
    assert lines[0].startswith("# Measured on Linux 6.18.44")


def test_keys_of_creat_and_close_sum_to_the_median() -> None:
    """One key of close(2) serves both filesystems, so creat(2) is the rest of the measured time of each."""
    calls = {
        kind: times(3_000, 1_300, 79_500, create) for kind, create in (("xfs", 20_000), ("ext4", 50_000))
    }
    paths = tomllib.loads("\n".join(cost_lines(measured(**calls))))["processors"]["paths"]

    def value_ns(key: dict[str, str]) -> int:
        return int(key.get("measured", key.get("assumed", "")).removesuffix(" ns"))

    close_ns = value_ns(paths["write"]["close_ns"])
    of_xfs, of_ext4 = (paths["filesystems"][kind]["writer"] for kind in calls)
    chunk_ns = value_ns(of_xfs["chunk_ns"]) / 64
    assert value_ns(of_xfs["create_ns"]) + chunk_ns + close_ns == pytest.approx(20_000, abs=1)
    assert value_ns(of_ext4["create_ns"]) + close_ns == pytest.approx(50_000, abs=1)


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
    assert processors.provenance("program_scale").origin.value == "measured"
    assert write.provenance("folio_ns").origin.value == "measured"


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
