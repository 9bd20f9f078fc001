"""The sections of fio commands and job files: which options belong to which job, and what is no option."""

from __future__ import annotations

from pathlib import Path

import pytest

from wbsim.models.workloads.command_line import CommandError
from wbsim.models.workloads.fio import parse_command
from wbsim.models.workloads.fio_sections import FLAGS, NO_CHANGES, OF_THE_REPORT, Changes, sections_of


def texts(line: str, changes: Changes = NO_CHANGES) -> list[list[str]]:
    """Return the options of each job of a *line*."""
    return [[option.text for option in section] for section in sections_of(line, changes)[0]]


def complaints(line: str, changes: Changes = NO_CHANGES) -> list[str]:
    """Return what is wrong with a *line*."""
    with pytest.raises(CommandError) as refusal:
        sections_of(line, changes)
    return list(refusal.value.complaints)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Return the path of a job file."""
    return tmp_path / "a.fio"


# -- the command line


def test_options_in_front_hold_for_all_jobs() -> None:
    """They come first, so an option of the job itself counts."""
    assert texts("fio --bs=4k --rw=write --name=a --bs=8k --name=b") == [
        ["bs=4k", "rw=write", "name=a", "bs=8k"], ["bs=4k", "rw=write", "name=b"],
    ]  # fmt: skip


def test_options_behind_a_name_are_that_job_s() -> None:
    """The next name ends them."""
    assert texts("fio --name=a --size=1m --name=b --size=2m") == [
        ["name=a", "size=1m"], ["name=b", "size=2m"],
    ]  # fmt: skip


def test_one_dash_is_as_good_as_two() -> None:
    """getopt_long_only(3) takes both, and also -name."""
    assert texts("fio -rw=write -name=a --bs=4k -bs=8k") == [["rw=write", "name=a", "bs=4k", "bs=8k"]]


def test_value_may_follow_a_blank() -> None:
    """The next word is the value, even if it begins with a dash or has an equals sign."""
    assert texts("fio --name a --bs 4k -size 1m --description --x=y") == [
        ["name=a", "bs=4k", "size=1m", "description=--x=y"],
    ]  # fmt: skip


@pytest.mark.parametrize("flag", sorted(FLAGS))
def test_flag_takes_no_word_for_its_value(flag: str) -> None:
    """It has a value only after an equals sign; the word behind is another option."""
    assert texts(f"fio --name=a --{flag} --bs=4k") == [["name=a", flag, "bs=4k"]]
    assert texts(f"fio --name=a --{flag}=0 --bs=4k") == [["name=a", f"{flag}=0", "bs=4k"]]


def test_value_keeps_its_further_equals_signs() -> None:
    """The first one ends the name; a value may be empty."""
    assert texts("fio --name=a=b --filename=") == [["name=a=b", "filename="]]


@pytest.mark.parametrize("word", ["--bs", "-bs", "--name"])
def test_last_option_without_a_value_is_refused(word: str) -> None:
    assert complaints(f"fio --name=a {word}") == [
        f"{word} is the last word, and needs a value; write {word}=VALUE"
    ]


@pytest.mark.parametrize("option", sorted(OF_THE_REPORT))
def test_options_of_the_report_are_set_aside(option: str) -> None:
    """They are no options of a job; each takes its value, or none."""
    value = " json" if OF_THE_REPORT[option] else ""
    sections, dropped = sections_of(f"fio --{option}{value} --name=a --{option}=x --bs=4k")
    assert [[an_option.text for an_option in section] for section in sections] == [["name=a", "bs=4k"]]
    assert dropped == [option, option]


def test_a_path_to_fio_is_fio() -> None:
    assert texts("/usr/local/bin/fio --name=a") == [["name=a"]]
    assert complaints("/usr/bin/fio2 --name=a") == [
        "'/usr/bin/fio2 --name=a' is not a fio command; begin with fio"
    ]


def test_job_file_next_to_jobs_is_refused(job: Path) -> None:
    job.write_text("[a]\n")
    assert complaints(f"fio --name=a {job}") == [
        "jobs of the command line and job files are two runs; give one of them",
    ]


def test_option_next_to_a_job_file_is_refused(job: Path) -> None:
    """It is no option of the file's jobs, but those of the report are accepted."""
    job.write_text("[a]\n")
    assert complaints(f"fio --bs=8k {job}") == [
        "--bs=8k next to a job file is no option of its jobs; write it into its [global]",
    ]
    assert sections_of(f"fio --output-format=json {job} --minimal")[1] == ["output-format", "minimal"]


# -- job files


def test_global_sections_hold_for_jobs_below(job: Path) -> None:
    """A later one adds to an earlier one, and a job above it does not have its options."""
    job.write_text("[global]\nbs=4k\n[a]\nrw=write\n[global]\nbs=8k\n[b]\nsize=1m\n[globals]\nloops=2\n[c]\n")
    assert texts(f"fio {job}") == [
        ["bs=4k", "name=a", "rw=write"], ["bs=4k", "bs=8k", "name=b", "size=1m"],
        ["bs=4k", "bs=8k", "loops=2", "name=c"],
    ]  # fmt: skip


def test_file_without_a_job_has_none(job: Path) -> None:
    job.write_text("[global]\nbs=4k\n")
    assert texts(f"fio {job}") == []


def test_comment_ends_a_line_anywhere(job: Path) -> None:
    """At ; and #, whichever comes first, at the beginning of a line or behind a value or a section."""
    job.write_text(
        "; one\n# two\n  ; three\n[a] ; four\nbs=4k # five ; six\nrw=wr;ite\nsize=1m;#\nloops=2#;3\n"
    )
    assert texts(f"fio {job}") == [["name=a", "bs=4k", "rw=wr", "size=1m", "loops=2"]]


def test_blanks_around_names_and_values_do_not_count(job: Path) -> None:
    job.write_text("  [a]  \n\n \t bs = 4k \n\trw=write\t\n stonewall \n")
    assert texts(f"fio {job}") == [["name=a", "bs=4k", "rw=write", "stonewall"]]


def test_option_of_a_file_has_its_place(job: Path) -> None:
    """The file and the line, of a job's name too, and the lines of comments count."""
    job.write_text("# one\n[global]\nbs=4k\n\n[a]\nrw=write\n")
    assert [(an_option.place, an_option.text) for an_option in sections_of(f"fio {job}")[0][0]] == [
        (f"{job}:3", "bs=4k"), (f"{job}:5", "name=a"), (f"{job}:6", "rw=write"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bs=4k", "'bs=4k' is before the first section; begin with [global]"),
        ("[]", "'[]' has no printable job name; write one, such as [job]"),
        ("[ ]", "'[ ]' has no printable job name; write one, such as [job]"),
        ("[a", "'[a' has no printable job name; write one, such as [job]"),
        ("[a]]b", "'[a]]b' has no printable job name; write one, such as [job]"),
    ],
)
def test_line_outside_of_a_section_is_refused(job: Path, line: str, message: str) -> None:
    job.write_text(f"\n{line}\n")
    assert complaints(f"fio {job}") == [f"{job}:2: {message}"]


def test_variables_come_from_the_environment(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In values alone; a variable that is not set stays as it is."""
    monkeypatch.setenv("MUCH", "2m")
    monkeypatch.delenv("NOTHING", raising=False)
    job.write_text("[a]\nsize=${MUCH}\nio_size=$MUCH\nfilename=${NOTHING}\n")
    assert texts(f"fio {job}") == [["name=a", "size=2m", "io_size=2m", "filename=${NOTHING}"]]


def test_included_lines_stand_for_their_line(job: Path) -> None:
    """A file is looked for as it is named, and then next to the file that includes it."""
    job.write_text("[global]\ninclude more.inc ; of all\n[a]\nrw=write\ninclude sub/tail.inc\n")
    (job.parent / "more.inc").write_text("bs=4k\n# nothing\nsize=1m\n")
    (job.parent / "sub").mkdir()
    (job.parent / "sub/tail.inc").write_text("loops=2\ninclude last.inc\n")
    (job.parent / "sub/last.inc").write_text("[b]\nloops=3\n")
    assert texts(f"fio {job}") == [
        ["bs=4k", "size=1m", "name=a", "rw=write", "loops=2"], ["bs=4k", "size=1m", "name=b", "loops=3"],
    ]  # fmt: skip
    places = [an_option.place for an_option in sections_of(f"fio {job}")[0][0]]
    assert places[:2] == [f"{job.parent}/more.inc:1", f"{job.parent}/more.inc:3"]


def test_included_path_is_first_one_from_here(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of that name next to the job file is not read then."""
    folder = job.parent / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    job.write_text("[a]\ninclude more.inc\n")
    job.with_name("more.inc").write_text("bs=4k\n")
    assert texts(f"fio {job}") == [["name=a", "bs=4k"]]
    (folder / "more.inc").write_text("bs=8k\n")
    assert texts(f"fio {job}") == [["name=a", "bs=8k"]]


def test_file_may_be_included_twice_but_not_by_itself(job: Path) -> None:
    """Neither directly, nor through another file."""
    job.write_text("[a]\ninclude x.inc\n[b]\ninclude x.inc\n")
    (job.parent / "x.inc").write_text("bs=4k\n")
    assert texts(f"fio {job}") == [["name=a", "bs=4k"], ["name=b", "bs=4k"]]
    (job.parent / "x.inc").write_text(f"include {job}\n")
    include = job.parent / "x.inc"
    assert complaints(f"fio {job}") == [f"{include}:1: {job} includes itself; leave the line out"]


def test_file_that_cannot_be_read_is_named(job: Path) -> None:
    """A missing one, a missing included one with the line that includes it, and one that is no text."""
    remedy = "give a readable text file"
    assert complaints("fio none.fio") == [
        f"the job file none.fio cannot be read: No such file or directory; {remedy}",
    ]
    job.write_text("[a]\ninclude none.inc\n")
    assert complaints(f"fio {job}") == [
        f"{job}:2: the job file {job.parent}/none.inc cannot be read: No such file or directory; {remedy}",
    ]
    job.write_bytes(b"[a]\nfilename=\xff\n")
    assert complaints(f"fio {job}") == [f"the job file {job} cannot be read: is not UTF-8 text; {remedy}"]


def test_job_files_run_one_after_another(job: Path) -> None:
    """The first job of each file but the first one waits for all before it; globals end with their file."""
    other = job.with_name("b.fio")
    job.write_text("[global]\nbs=4k\n[a]\n[b]\n")
    other.write_text("[c]\n[d]\n")
    assert texts(f"fio {job} {other} {other}") == [
        ["bs=4k", "name=a"], ["bs=4k", "name=b"], ["name=c", "stonewall"], ["name=d"],
        ["name=c", "stonewall"], ["name=d"],
    ]  # fmt: skip


# -- changes


def test_change_replaces_the_options_of_its_job(job: Path) -> None:
    """It comes last, has its key as its place, and leaves other jobs alone; true and false are 1 and 0."""
    job.write_text("[a]\nbs=4k\n[b]\nbs=4k\n")
    changes = Changes({"b": {"bs": "8k", "loops": 3, "stonewall": True, "unlink": False}})
    assert texts(f"fio {job}", changes) == [
        ["name=a", "bs=4k"], ["name=b", "bs=4k", "bs=8k", "loops=3", "stonewall=1", "unlink=0"],
    ]  # fmt: skip
    places = [an_option.place for an_option in sections_of(f"fio {job}", changes)[0][1][2:]]
    assert places == ["b.bs", "b.loops", "b.stonewall", "b.unlink"]


def test_change_holds_for_jobs_of_a_command_line() -> None:
    """All jobs with its name are changed."""
    line = "fio --rw=write --size=1m --name=a --name=b --name=a"
    assert parse_command(line, Changes({"a": {"bs": "64k"}}))["bs"] == [65_536, 4_096, 65_536]


def test_change_of_an_unknown_job_is_refused() -> None:
    assert complaints("fio --name=b --name=a", Changes({"c": {}})) == [
        "there is no job 'c'; use one of a, b",
    ]


def test_texts_replace_their_names_in_job_files(job: Path) -> None:
    """In names, values and sections, several times; other braces stay."""
    job.write_text("[{job}]\nbs={n}k\nfilename={job}.{n}.{other}\n{job}={n}\n")
    assert texts(f"fio {job}", Changes(texts={"n": "8", "job": "x"})) == [
        ["name=x", "bs=8k", "filename=x.8.{other}", "x=8"],
    ]  # fmt: skip
