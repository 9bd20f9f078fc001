"""The files that programs write: their paths, and two programs that share one."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.models.workloads.command_line import CommandError
from wbsim.models.workloads.fio import parse_command
from wbsim.models.workloads.spec import Written, plain_path

FIO = "fio --rw=write --create_on_open=1 --fallocate=none --size=1m"
DD = "dd if=/dev/zero bs=1M count=1"
FS_MARK = "fs_mark -S0 -k -n 9 -s 4096"
NO_MODEL = "and a file with two writers is not modelled; give one of them another"


def scenario_of(*lines: str, changes: str = "") -> str:
    """Return a configuration with two mounts, and the programs p0, p1 ... with these command *lines*."""
    programs = "\n".join(f"programs.p{number}.command = '''{line}'''" for number, line in enumerate(lines))
    return f"""
title = "programs that write files"
[scenario]
machine.like = "desktop-2018"
kernel.like = "6.12"
mounts.root = {{ like = "ext4", size = "20 GB", at = "/" }}
mounts.data = {{ like = "ext4", size = "20 GB", at = "/data" }}
{programs}
{changes}
"""


def refusals(*lines: str, changes: str = "") -> list[str]:
    """Return the errors of `scenario_of`."""
    try:
        parse(scenario_of(*lines, changes=changes), "x.toml")
    except BadInput as error:
        return [str(problem) for problem in error.problems]
    return []


PARTS = st.lists(st.sampled_from(["a", "b.0", "..", ".", ""]), min_size=1, max_size=6)


@given(PARTS, st.booleans())
@example(["", "a", ".", "", "b.0"], True)
def test_spellings_of_a_path_are_one(parts: list[str], absolute: bool) -> None:
    """A slash more, /./ and a detour over a parent lead to the same file."""
    path = plain_path("/" * absolute + "/".join(["x", "y", *parts]))
    more = "//" * absolute + ".//".join(["x/", "./y/z/../", *(f"{part}/" for part in parts)])
    assert plain_path(more) == path == plain_path(path)
    assert path == "." or not set(path.removeprefix("/").split("/")) & {"", "."} or path == "/"


@given(
    st.integers(0, 12),
    st.integers(1, 12),
    st.integers(0, 12),
    st.integers(1, 12),
    st.sampled_from(["a", "b"]),
)
def test_shared_file_is_the_first_common_one(
    first: int, count: int, other: int, more: int, stem: str
) -> None:
    """Two groups of numbered files share what the sets of their paths share."""
    left, right = Written("a", range(first, first + count)), Written(stem, range(other, other + more))
    common = {f"a.{n}" for n in range(first, first + count)} & {
        f"{stem}.{n}" for n in range(other, other + more)
    }
    assert left.shared(right) == right.shared(left)
    assert left.shared(right) in (common or {""})
    assert all(Written.file(path).shared(left) == path for path in common)


@pytest.mark.parametrize(
    ("lines", "path", "remedy"),
    [
        ((f"{DD} of=/data/f", f"{DD} of=/data/f conv=fsync"), "/data/f", "of="),
        ((f"{DD} of=/data/f", f"{DD} of=//data/./f"), "/data/f", "of="),
        ((f"{DD} of=/data/f", f"{DD} of=/data/x/../f"), "/data/f", "of="),
        ((f"{DD} of=f", f"{DD} of=./f"), "f", "of="),
        ((f"{FIO} --name=a --directory=/data", f"{FIO} --name=a --directory=/data/"), "/data/a.0.0", "fio"),
        ((f"{FIO} --name=a", f"{FIO} --name=b --name=a"), "a.0.0", "fio"),
        ((f"{FIO} --name=a --numjobs=3", f"{FIO} --name=a --numjobs=2 --nrfiles=4"), "a.0.0", "fio"),
        ((f"{FIO} --name=a --numjobs=3 --nrfiles=4", f"{DD} of=a.2.3"), "a.2.3", "of="),
        ((f"{DD} of=a.2.3", f"{FIO} --name=a --numjobs=3 --nrfiles=4"), "a.2.3", "fio"),
    ],
)  # fmt: skip
def test_second_writer_of_a_path_is_refused(lines: tuple[str, str], path: str, remedy: str) -> None:
    """The error stands at the second program, and names both programs, the file and the remedy."""
    option = {"fio": "--name or --directory"}.get(remedy, remedy)
    assert refusals(*lines) == [
        f"x.toml:9: programs.p1.command: programs.p0 and programs.p1 both write {path}, {NO_MODEL} {option}"
    ]


@pytest.mark.parametrize(
    "lines",
    [
        (f"{DD} of=/data/f", f"{DD} of=/f"),
        (f"{DD} of=/data/f", f"{DD} of=/data/F"),
        (f"{DD} of=f", f"{DD} of=/f"),
        (f"{FIO} --name=a --directory=/data", f"{FIO} --name=b --directory=/data"),
        (f"{FIO} --name=a --directory=/data", f"{FIO} --name=a --directory=/"),
        (f"{FIO} --name=a --numjobs=3 --nrfiles=4 --directory=/data", f"{DD} of=/data/a.3.0"),
        (f"{FIO} --name=a --numjobs=3 --nrfiles=4 --directory=/data", f"{DD} of=/data/a.0.4"),
        (f"{FIO} --name=a --directory=/data", f"{DD} of=/data/a.0.00"),
        (f"{FS_MARK} -d /data/d", f"{FS_MARK} -d /data/d", f"{DD} of=/data/d/f"),
        (f"{DD} of=/data/f", "sync -f /data", "sync"),
    ],
)  # fmt: skip
def test_programs_with_files_of_their_own_are_accepted(lines: tuple[str, ...]) -> None:
    """The names of fs_mark's files are random: two of them in one directory share no file."""
    assert refusals(*lines) == []


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        (f"{FIO} --name=a --numjobs=3 --nrfiles=4", ""),
        (f"{FIO} --name=a --name=b", "programs.p0.numjobs = 5"),
        (f"{FIO} --name=a", 'programs.p0 = { numjobs = 2, directories = ["/data/1", "/data/2"] }'),
        (f"{DD} of=/data/f", "programs.p0.streams = 4"),
        (f"{DD} of=/data/f", 'programs.p0 = { streams = 2, directories = ["/data", "/data/2"] }'),
    ],
)
def test_copies_of_a_program_have_files_of_their_own(line: str, changes: str) -> None:
    """Clones of a job, streams and jobs that a key adds share no file."""
    text = scenario_of(line, changes=changes) if "{" not in changes else ""
    if not text:
        text = scenario_of().replace("\n\n\n", f"\n{changes[:-1]}, command = '''{line}''' }}\n")
    (case,) = parse(text, "x.toml").cases
    workload = case.scenario.programs["p0"].workload
    assert len(set(workload.writes())) == len(list(workload.writes())) > 0


def test_directories_of_a_key_decide_which_files_are_shared() -> None:
    """A key moves one of two dds with the same of= into another directory, or both into the same one."""
    lines = (f"{DD} of=/data/f", f"{DD} of=/data/f")
    assert refusals(*lines, changes='programs.p1.directories = ["/data/other"]') == []
    apart = (f"{DD} of=/data/1/f", f"{DD} of=/data/2/f")
    assert refusals(*apart) == []
    assert refusals(*apart, changes='programs.p1.directories = ["/data/1/"]') == [
        f"x.toml:9: programs.p1.command: programs.p0 and programs.p1 both write /data/1/f, {NO_MODEL} of="
    ]


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ("--name=a --name=a", "a.0.0"),
        ("--name=a --name=b --name=a --directory=./", "a.0.0"),
        ("--directory=/d --name=a --numjobs=2 --name=a --numjobs=2", "/d/a.0.0"),
    ],
)
def test_two_jobs_of_one_name_are_refused(more: str, path: str) -> None:
    """fio 3.33 gives two jobs of one name in one directory the same files."""
    with pytest.raises(CommandError) as refused:
        parse_command(f"{FIO} {more}")
    said = f"two jobs write to the same file, {path}; give each a different --name or --directory"
    assert str(refused.value) == said
