"""The programs of a scenario: what may stand around a command, and changes of the jobs of fio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput

TEXT = """\
title = "programs"
[scenario]
machine.like = "loop-vm"
kernel.like = "6.18"
filesystem.like = "loop-xfs"
programs.a = """
JOBS = """\
[global]
rw=write
group_reporting
include more.fio

[one]
size={size}m

[two]
stonewall
bs=16k
"""
DD = "dd if=/dev/zero of=/m/f bs=1M count=3"


def workloads(text: str, *overrides: str, name: str = "x.toml") -> list[Any]:
    """Return the workload of the program a in each case of *text*."""
    cases = parse(f"{TEXT}{text}\n", name, overrides).cases
    return [case.scenario.programs["a"].workload for case in cases]


def problems(text: str, *overrides: str, name: str = "x.toml") -> list[str]:
    """Return the problems of *text*, one line each."""
    with pytest.raises(BadInput) as refusal:
        parse(f"{TEXT}{text}\n", name, overrides)
    return str(refusal.value).splitlines()


@pytest.fixture
def jobs(tmp_path: Path) -> str:
    """The name of a configuration next to the job file `JOBS`."""
    (tmp_path / "j.fio").write_text(JOBS)
    (tmp_path / "more.fio").write_text("size=2m\nfsync=4\n")
    return str(tmp_path / "x.toml")


@pytest.mark.parametrize(
    "line",
    [
        f"sudo {DD}", f"time {DD}", f" sudo  time\t{DD}", f"nohup {DD} &", f"exec {DD}", f"{DD};", f"{DD} ; ",
        f"{DD} &&", DD.replace(" bs", " \\\\\\n    bs"),
    ],
)  # fmt: skip
def test_words_around_a_command_are_left_out(line: str) -> None:
    """They are sudo, time, nohup and exec, a last operator, and a line break behind a backslash."""
    assert workloads(f'"{line}"') == workloads(f'"{DD}"')


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (f"{DD}; sync", "'count=3;' has ';'"),
        (f"{DD} && sync", "'&&' has '&'"),
        (f"{DD} | tee log", "'|' has '|'"),
        (f"{DD} > log", "'>' has '>'"),
        (f"{DD} & sync &", "'&' has '&'"),
    ],
)
def test_two_commands_in_a_line_are_two_programs(line: str, word: str) -> None:
    """The error names the key that lets a program follow another one."""
    assert problems(f'"{line}"') == [
        f"x.toml:6: programs.a.command: {word} for a shell, and no shell reads this line; a command is one"
        " program: write what follows as a program of its own, with after = NAME of this one, or quote it"
    ]


@pytest.mark.parametrize("line", ["sudo", "sudo -u me dd", "time -p dd", "env A=1 dd"])
def test_other_words_before_a_command_are_refused(line: str) -> None:
    (problem,) = problems(f'"{line}"')
    assert problem.startswith(f"x.toml:6: programs.a.command: '{line}' is not a command line of dd, find,")


def test_rm_of_files_has_the_costs_of_its_kind() -> None:
    """The command rm -r removes a tree, and each file has a cost."""
    (removal,) = workloads('"rm /m/f /m/g"')
    assert (removal.kind, removal.call, removal.paths) == ("one_call", "unlink", ("/m/f", "/m/g"))
    assert removal.fork_time > 0


def test_program_follows_another_one() -> None:
    """Its start is a time after the end of that program."""
    text = f'{TEXT}"{DD}"\nprograms.b = {{ command = "sync", after = "a", start = "2 s" }}\n'
    (case,) = parse(text, "x.toml").cases
    program = case.scenario.programs["b"]
    assert (program.after, program.start) == ("a", 2 * 10**9)


def test_options_of_a_job_may_be_changed(jobs: str) -> None:
    """Numbers have the units of fio, and true is 1."""
    text = '{ command = "fio j.fio", two = { bs = "8k", sync = true, size = "4m" } }'
    (spec,) = workloads(text, "size=3", name=jobs)
    assert spec.names == ("one", "two")
    assert (spec.bs, spec.sync, spec.filesize) == ((4096, 8192), ("", "O_SYNC"), (3 << 20, 4 << 20))
    assert (spec.fsync, spec.stonewall, spec.ignored) == (4, (False, True), ("group_reporting",))
    (spec,) = workloads('"fio j.fio"', "programs.a.two.bs=64k", "size=3", name=jobs)
    assert spec.bs == (4096, 65_536)


def test_text_of_a_job_file_may_be_swept(jobs: str) -> None:
    """The name in braces is a key of the sweep."""
    text = '"sudo fio j.fio"\n[sweep.grid]\nsize = [1, 2]\n"programs.a.two.bs" = ["4k", "8k"]'
    specs = workloads(text, name=jobs)
    assert [spec.filesize for spec in specs] == [(1 << 20, 2 << 20)] * 2 + [2 << 20] * 2
    assert [spec.bs for spec in specs] == [4096, (4096, 8192)] * 2


@pytest.mark.parametrize(
    ("text", "override", "message"),
    [
        (
            '{ command = "fio j.fio", on = { bs = "8k" } }',
            "size=3",
            "there is no job 'on'; use one of one, two",
        ),
        ('{ command = "sync", two = { bs = "8k" } }', "", "sync has no job 'two'; only fio has jobs"),
    ],
)
def test_change_of_a_missing_job_is_refused(text: str, override: str, message: str, jobs: str) -> None:
    """The error names the jobs, or the option."""
    (problem,) = problems(text, *[override] * bool(override), name=jobs)
    assert problem.startswith(f"{jobs}:6: programs.a.command: {message}")


@pytest.mark.parametrize(
    ("change", "override", "message"),
    [
        ("two = { direct = 1 }", "", ":6: programs.a.two.direct: direct=1: is not modelled: direct=1 writes"),
        ("two = { bs = 4096, fsinc = 1 }", "", ":6: programs.a.two.fsinc: fsinc=1: fio has no such option;"),
        ("two = { bs = [1, 2] }", "", ":6: programs.a.two.bs: an option has one value; write it as in a job"),
        ("two = { bs = { a = 1 } }", "", ":6: programs.a.two.bs: an option has one value; write it as in a"),
        ("two = { wait_for = 'no' }", "", ":6: programs.a.two.wait_for: wait_for=no: no job before this one"),
        ("two = { bs = 1 }", "programs.a.two.bs=z", "programs.a.two.bs: bs=z: is not a size for fio; write"),
    ],
)
def test_wrong_option_of_a_change_is_reported_at_its_key(
    change: str, override: str, message: str, jobs: str
) -> None:
    """The key is that of the file or of the command line."""
    text = f'{{ command = "fio j.fio", {change} }}'
    (problem,) = problems(text, "size=3", *[override] * bool(override), name=jobs)
    place = f"--set {override}: " if override else jobs
    assert problem.startswith(f"{place}{message}")


def test_text_of_one_point_does_not_reach_the_next_one(jobs: str) -> None:
    """A point without the name leaves the braces, which are no size."""
    text = '"fio j.fio"\n[sweep]\nname = "n"\npoints = [{ value = 1, size = 1 }, { value = 2 }]'
    (problem,) = problems(text, name=jobs)
    assert "j.fio:7: size={size}m: is not a size" in problem


@pytest.mark.parametrize(
    "command",
    ["'fio j.fio;'", "['fio j.fio']", "\"fio 'j.fio'\"", "'fio outer.fio'", "{ command = 'fio j.fio' }"],
)
def test_text_is_found_in_any_job_file_of_a_command(command: str, jobs: str) -> None:
    """The file may be quoted, stand before a semicolon, or be included by another one."""
    Path(jobs).with_name("outer.fio").write_text("include j.fio\n")
    (spec,) = workloads(command, "size=3", name=jobs)
    assert spec.filesize == (3 << 20, 2 << 20)


def test_text_is_replaced_in_commands_and_job_files(jobs: str) -> None:
    """One setting may stand in both."""
    (spec,) = workloads("{ command = 'fio j.fio', start = '{size} s' }", "size=3", name=jobs)
    assert spec.filesize == (3 << 20, 2 << 20)


@pytest.mark.parametrize("key", ["kind", "ignored"])
def test_field_that_follows_from_the_command_is_refused(key: str) -> None:
    problem, *_ = problems(f"{{ command = '{DD}', {key} = ['a'] }}")
    assert problem == f"x.toml:6: programs.a.{key}: follows from the command; leave it out"


def test_braces_of_a_job_file_need_a_value(jobs: str) -> None:
    """A key that neither a command line nor a job file has is unknown."""
    assert any(
        "j.fio:7: size={size}m: is not a size" in problem for problem in problems('"fio j.fio"', name=jobs)
    )
    problem, *_ = problems('"fio j.fio"', "size=3", "sise=3", name=jobs)
    assert problem.startswith("--set sise=3: sise: no command line contains {sise}")
