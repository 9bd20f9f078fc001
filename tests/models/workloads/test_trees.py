"""find, rm and bulkstat: their command lines, and how they divide the files among processes."""

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
        (rm, "rm -rf - /a", ["-", "/a"]),
        (bulkstat, "xfs_io -c bulkstat /a", ["/a"]),
        (bulkstat, "xfs_io -c 'bulkstat -a 3' /a", ["/a"]),
    ],
)
def test_command_line_gives_the_directories(read: Any, line: str, directories: list[str]) -> None:
    """The tools themselves read the lines like this."""
    assert read(line)["directories"] == directories


@pytest.mark.parametrize(
    ("read", "line", "says"),
    [
        (find, "find -ctime 1", "has no path; write find"),
        (find, "find /a", "give one test that needs the inode"),
        (find, "find /a -name x", "give one test that needs the inode"),
        (rm, "rm -rf", "required"),
        (rm, "rm -rx /a", "-x"),
        (bulkstat, "xfs_io -c fsync /a", "write xfs_io -c bulkstat PATH"),
        (bulkstat, "xfs_io /a", "required"),
    ],
)
def test_unsupported_command_line_is_refused(read: Any, line: str, says: str) -> None:
    """The error gives a supported line or the option that was not understood."""
    with pytest.raises(CommandError, match=says):
        read(line)


def text(program: str, **given: Any) -> str:
    """Return a configuration that runs *program*."""
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
        (FIND, {"files": 0}, "needs files on this mount"),
        ('programs.p = "xfs_io -c bulkstat /m"', {"filesystem": "loop-ext4"}, "bulkstat"),
        ('programs.p = "find /elsewhere -ctime 1"', {}, "is outside every mount"),
        ('programs.p = { command = "find /m -ctime 1", times = 0 }', {}, "greater than or equal to 1"),
        (FIND, {"files": -1}, "greater than or equal to 0"),
        ('programs.p = { command = "fs_mark -S0 -n 3 -L 2 -s 4096 -d /m/a", until_steady = true }', {},
         r"files have 4096 B, but until_steady needs empty files; give -s 0$"),
    ],
)  # fmt: skip
def test_impossible_configuration_is_refused(program: str, given: dict[str, Any], says: str) -> None:
    """The error comes before a simulation begins."""
    with pytest.raises(BadInput, match=says):
        parse(text(program.format(times=2) if "{times}" in program else program, **given), "x.toml")


@pytest.mark.parametrize("times", [1, 2, 7])
def test_processes_divide_all_files_among_them(times: int) -> None:
    """*times* processes read each of 900 files once, and fewer processes take proportionally longer."""
    (case,) = parse(text(FIND.format(times=times)), "x.toml").cases
    outcome = run_case(case, 1)
    assert outcome.programs["p"].files == 900
    assert outcome.programs["p"].reckoned_files == 0
    assert 900 * 25e-6 / min(times, 4) < outcome.wall_time < 900 * 50e-6 / min(times, 4) + 0.03


def outcome_of(variant: str, *overrides: str) -> Any:
    """Return the outcome of an operation of report V13, the *variant*, on 400 000 files."""
    changes = ["mounts.scratch.files=400000", *overrides]
    return run_case(load(config_path("inodes.toml"), changes, variant).cases[0], 1)


@pytest.mark.long
def test_reckoned_run_takes_as_long_as_a_complete_run() -> None:
    """More than half of 400 000 files are reckoned.

    The wall times differ by less than the time in which the processes start, one after another.  When the
    first processes end, the others contend less.
    """
    reckoned = outcome_of("bulkstat").programs["read"]
    whole = outcome_of("bulkstat", "programs.read.until_steady=false").programs["read"]
    assert reckoned.reckoned_files > 200_000
    assert whole.reckoned_files == 0
    assert reckoned.files == whole.files == 400_000
    begin_s = 16 * 1e-3 * 2.67
    assert reckoned.wall_time == pytest.approx(whole.wall_time, abs=begin_s)
    assert reckoned.system_cpu_time == pytest.approx(whole.system_cpu_time, abs=16 * begin_s)
