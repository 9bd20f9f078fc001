"""find, rm and bulkstat: what their command lines mean, and how they share out the files."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.vfs.test_inode_life import FIND, TEXT
from wbsim.experiments.config.experiment import config_path, load, parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.running.simulate import run_case
from wbsim.models.workloads.bulkstat import parse_command as bulkstat
from wbsim.models.workloads.command_line import CommandError
from wbsim.models.workloads.find import parse_command as find
from wbsim.models.workloads.rm import parse_command as rm


@pytest.mark.parametrize(
    ("read", "line", "directories"),
    [
        (find, "find /a /b -ctime 1", ["/a", "/b"]),
        (find, "find . -mtime +3", ["."]),
        (rm, "rm -rf /a", ["/a"]),
        (rm, "rm -r -f /a /b", ["/a", "/b"]),
        (rm, "/bin/rm --recursive /a", ["/a"]),
        (bulkstat, "xfs_io -c bulkstat /a", ["/a"]),
        (bulkstat, "xfs_io -c 'bulkstat -a 3' /a", ["/a"]),
    ],
)
def test_command_lines(read: Any, line: str, directories: list[str]) -> None:
    """As the tools read them."""
    assert read(line)["directories"] == directories


@pytest.mark.parametrize(
    ("read", "line", "says"),
    [
        (find, "find -ctime 1", "give a path to begin with"),
        (find, "find /a", "only one test that needs the inode"),
        (find, "find /a -name x", "only one test that needs the inode"),
        (rm, "rm /a", "write rm -rf PATH"),
        (rm, "rm -rf", "required"),
        (rm, "rm -rx /a", "-x"),
        (bulkstat, "xfs_io -c fsync /a", "only -c bulkstat"),
        (bulkstat, "xfs_io /a", "required"),
    ],
)
def test_refused_command_lines(read: Any, line: str, says: str) -> None:
    """Each says what to write instead, or what was not understood."""
    with pytest.raises(CommandError, match=says):
        read(line)


def text(program: str, **given: Any) -> str:
    """A configuration with that program."""
    known = {
        "kernel": "3.11-mmotm",
        "filesystem": "v13-xfs",
        "files": 900,
        "cached": 0,
        "cpus": 4,
        "nodes": 1,
    }
    return TEXT.format(**{**known, "memory": 64, "programs": program, **given})


@pytest.mark.parametrize(
    ("program", "given", "says"),
    [
        (FIND, {"files": 0}, "there are no files"),
        ('programs.p = "xfs_io -c bulkstat /m"', {"filesystem": "loop-ext4"}, "bulkstat"),
        ('programs.p = "find /elsewhere -ctime 1"', {}, "lies outside every mount"),
        ('programs.p = { command = "find /m -ctime 1", times = 0 }', {}, "greater than or equal to 1"),
        (FIND, {"files": -1}, "greater than or equal to 0"),
        ('programs.p = { command = "fs_mark -S0 -n 3 -L 2 -s 4096 -d /m/a", until_steady = true }', {},
         "give -s 0"),
    ],
)  # fmt: skip
def test_what_cannot_be(program: str, given: dict[str, Any], says: str) -> None:
    """Refused before anything runs."""
    with pytest.raises(BadInput, match=says):
        parse(text(program.format(times=2) if "{times}" in program else program, **given), "x.toml")


@pytest.mark.parametrize("times", [1, 2, 7])
def test_processes_share_all_files_out(times: int) -> None:
    """900 files among so many: each is done once, and who is alone takes as much longer."""
    (case,) = parse(text(FIND.format(times=times)), "x.toml").cases
    outcome = run_case(case, 1)
    assert outcome.programs["p"].files == 900
    assert outcome.programs["p"].reckoned_files == 0
    assert 900 * 25e-6 / min(times, 4) < outcome.wall_time < 900 * 50e-6 / min(times, 4) + 0.03


def outcome_of(variant: str, *overrides: str) -> Any:
    """One of V13's operations on 4 million files."""
    changes = ["mounts.scratch.files=400000", *overrides]
    return run_case(load(config_path("inodes.toml"), changes, variant).cases[0], 1)


@pytest.mark.long
def test_what_is_reckoned_is_what_a_whole_run_takes() -> None:
    """Of 400 000 files two thirds are reckoned.  The whole run's time differs by less than the processes take
    to begin, one after another: as they end, those that are left wait less for each other.
    """
    reckoned = outcome_of("bulkstat").programs["read"]
    whole = outcome_of("bulkstat", "programs.read.until_steady=false").programs["read"]
    assert reckoned.reckoned_files > 200_000
    assert whole.reckoned_files == 0
    assert reckoned.files == whole.files == 400_000
    begin_s = 16 * 1e-3 * 2.67
    assert reckoned.wall_time == pytest.approx(whole.wall_time, abs=begin_s)
    assert reckoned.system_cpu_time == pytest.approx(whole.system_cpu_time, abs=16 * begin_s)
