"""Command lines that the readers refuse: shell syntax, real options that are not modelled, unknown words."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.experiments.config.likes import Likes
from wbsim.experiments.config.problems import Problems
from wbsim.experiments.config.programs import programs_of
from wbsim.experiments.config.tree import place_tree
from wbsim.models.workloads import dd, fio, fio_options, fs_mark, real_options
from wbsim.models.workloads.command_line import CommandError, words_of

FIO = "fio --name=a --rw=write --size=1m --create_on_open=1 --fallocate=none"
FS_MARK = "fs_mark -S0 -k"
DD = "dd if=/dev/zero count=1"


def refusal(line: str) -> str:
    """Return the error of a program with the command *line*; "" if it is read."""
    problems = Problems()
    programs_of(Likes(problems, Path()), place_tree({"programs": {"p": line}}, (), "x.toml"))
    return "".join(problem.message for problem in problems.entries)


def shell(word: str, found: str, remedy: str) -> str:
    """Return the error about *found* in *word*."""
    return f"{word!r} has {found!r} for a shell, and no shell reads this line; {remedy}, or quote it"


LINES = "give command a list with a line for each of="
JOBS = "write a --name with its own --directory for each"
ALONE = "a command is one program: write what follows as a program of its own, with after = NAME of this one"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{DD} of=/data/f{{1..16}}", shell("of=/data/f{1..16}", "{1..16}", LINES)),
        (f"{DD} of=/data/{{a,b}}/f", shell("of=/data/{a,b}/f", "{a,b}", LINES)),
        (f"{DD} of=/data/f*", shell("of=/data/f*", "*", LINES)),
        (f"{DD} of=/data/f?", shell("of=/data/f?", "?", LINES)),
        (f"{DD} of=/data/f[12]", shell("of=/data/f[12]", "[12]", LINES)),
        (f"{DD} of=/data/f$i", shell("of=/data/f$i", "$i", "write its value")),
        (f'{DD} of="/data/f$i"', shell("of=/data/f$i", "$i", "write its value")),
        (f'{DD} of="/data/f${{i}}"', shell("of=/data/f${i}", "${", "write its value")),
        (f"{DD} of=/data/f$(date)", shell("of=/data/f$(date)", "$(", "write its value")),
        (f"{DD} of=/data/f`date`", shell("of=/data/f`date`", "`", "write its value")),
        (f"{DD} of=~/f", shell("of=~/f", "~", "write its value")),
        (f"{DD} of=/f; sync", shell("of=/f;", ";", ALONE)),
        (f"{DD} of=/f & sync", shell("&", "&", ALONE)),
        (f"{DD} of=/f > /dev/null", shell(">", ">", ALONE)),
        (f"{DD} of=/f 2>/dev/null", shell("2>/dev/null", ">", ALONE)),
        (f"{DD} of=/f # the first file", shell("#", "#", ALONE)),
        (f"{FIO} --directory=/data/{{0..3}}", shell("--directory=/data/{0..3}", "{0..3}", JOBS)),
        (f"{FIO} --directory=~", shell("--directory=~", "~", "write its value")),
        (f"{FIO} --directory=$HOME", shell("--directory=$HOME", "$HOME", "write its value")),
        (f"{FS_MARK} -d /mnt/{{1..4}}", shell("/mnt/{1..4}", "{1..4}", "write a -d for each")),
        (f"{FS_MARK} -d /mnt/*", shell("/mnt/*", "*", "write a -d for each")),
        ("sync -f /mnt/*", shell("/mnt/*", "*", "write each path")),
        ("sync -f ~", shell("~", "~", "write its value")),
        ("find /mnt/{a,b} -ctime 1", shell("/mnt/{a,b}", "{a,b}", "write each path")),
        ("rm -rf /mnt/*", shell("/mnt/*", "*", "write each path")),
        ("rm -rf $DIR", shell("$DIR", "$DIR", "write its value")),
        ("xfs_io -c bulkstat /mnt/[ab]", shell("/mnt/[ab]", "[ab]", "write each path")),
    ],
)  # fmt: skip
def test_shell_syntax_is_refused(line: str, message: str) -> None:
    """A shell would make other words of the line, so the line is no path that the user has."""
    assert refusal(line) == message


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (f"{DD} of='/data/f{{1..16}}'", "/data/f{1..16}"),
        (f'{DD} of="/data/*"', "/data/*"),
        (f"{DD} of=/data/f\\*", "/data/f*"),
        (f"{DD} of='/data/$x'", "/data/$x"),
        (f"{DD} of=/data/a~", "/data/a~"),
        (f"{DD} of=/data/{{x}}", "/data/{x}"),
        (f"{DD} of=/data/a#b", "/data/a#b"),
    ],
)
def test_quoted_path_is_taken_literally(line: str, path: str) -> None:
    """Quotation marks and backslashes keep a character from the shell; some characters mean nothing to it."""
    fields = dd.parse_commands([line])
    assert f"{fields['directories'][0]}/{fields['names'][0]}" == path


@given(st.lists(st.text("ab*?$~{},.;&|<>()#'\"\\ `[]", min_size=1, max_size=9), min_size=1, max_size=4))
def test_line_that_is_quoted_for_a_shell_is_read(words: list[str]) -> None:
    """shlex.join quotes every character that a shell would change."""
    assert words_of(shlex.join(words)) == words


def test_job_file_with_shell_syntax_is_refused(tmp_path: Path) -> None:
    """The error has the line of the job file; a variable that is not set stays in the value.

    A comment begins at ; and #, which a shell gives another meaning.
    """
    job = tmp_path / "a.fio"
    for value, found, remedy in (
        ("/data/{1..3}", "{1..3}", JOBS), ("~/x", "~", "write its value"),
        ("${WBSIM_UNSET}/x", "${", "write its value"),
    ):  # fmt: skip
        job.write_text(f"[a]\nrw=write\nsize=1m\ndirectory={value}\n")
        with pytest.raises(CommandError) as refused:
            fio.parse_command(f"fio {job}")
        what = f"directory={value}: has {found!r} for a shell, and no shell reads the value; {remedy}"
        assert str(refused.value) == f"{job}:4: {what}"
    job.write_text("[a]\nrw=write\nsize=1m\ndirectory=/a;b\n")
    assert fio.parse_command(f"fio {job}")["directories"] == ["/a"]


def test_clones_take_turns_in_a_list_of_directories() -> None:
    """The three clones of a job write to /a, /b and /a; the next job begins with /a again."""
    fields = fio.parse_command("fio --directory=/a:/b --rw=write --size=1m --name=a --numjobs=3 --name=b")
    assert fields["directories"] == ["/a", "/b", "/a", "/a"]
    assert fio.FioSpec.model_validate({**fields, **fio.FioSpec.costs}).paths() == [
        ["/a/a.0.0"], ["/b/a.0.0"], ["/a/a.1.0"], ["/a/b.0.0"],
    ]  # fmt: skip


@pytest.mark.parametrize("option", sorted(real_options.FIO))
def test_real_option_of_fio_is_no_misspelling(option: str) -> None:
    """The error of a real option says that it is not modelled, or what its value must be."""
    said = refusal(f"{FIO} --{option}=1")
    assert "did you mean" not in said
    assert "unrecognized" not in said


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{FIO} --opendir=/a", "opendir=/a: is not modelled: a tree of files is not read; name the files"
         " with filename"),
        (f"{FIO} --zoneskip=5", "zoneskip=5: is an option of fio that is not modelled; without it the job is"
         " another experiment"),
        (f"{FIO} --direct=1", "direct=1: is not modelled: direct=1 writes around the page cache, and"
         " writeback is about the cache"),
        (f"{FIO} --nmujobs=4", "nmujobs=4: fio has no such option; did you mean numjobs?"),
        (f"{FIO} --zzz=", "zzz=: fio has no such option"),
        (f"{FIO} --zzz", "--zzz is the last word, and needs a value; write --zzz=VALUE"),
        (f"{FS_MARK} -d /a -h", "-h is not modelled; modelled are: -S, -n,"),
        (f"{FS_MARK} -d /a -x", "unrecognized arguments: -x; modelled are: -S, -n,"),
        (
            f"{FS_MARK} -d /a -r 2",
            "-r 2 is not modelled: several files may get one name; give 8 or more",
        ),
        (f"{DD} of=/f skip=4", "skip=4 is not modelled: it skips what is read; leave it out"),
        (f"{DD} of=/f conv=excl", "conv=excl is not modelled: dd would stop at a file that exists"),
        (f"{DD} of=/f cuont=4", "dd has no operand cuont=; did you mean count=?"),
        (f"{DD} of=/f zzz=4", "dd has no operand zzz=; use if, of, bs, obs, count, seek, oseek, conv, oflag"),
        ("rm -rfv /a", "-v is not modelled; modelled are: -r, -R, --recursive, -f, --force"),
        ("sync --help", "--help is not modelled; modelled are: -f, --file-system, -d, --data"),
        ("xfs_io -x -c bulkstat /a", "-x is not modelled; modelled are: -c"),
    ],
)  # fmt: skip
def test_unmodelled_option_is_no_misspelling(line: str, message: str) -> None:
    """Only a word that is no option of the real program gets a guess."""
    said = refusal(line)
    assert said == message or (message.endswith(",") and said.startswith(message))


@pytest.mark.parametrize("operand", sorted(real_options.DD))
def test_real_operand_of_dd_is_no_misspelling(operand: str) -> None:
    """The error says that the operand, or its value, is not modelled."""
    assert "did you mean" not in refusal(f"{DD} of=/f {operand}=1")


MORE_OF_FIO = {"hugepage-size", "mem_align", "latency-log"}
"""Options of fio 3.33 that `real_options` lacks."""


@pytest.mark.parametrize(
    "table", ["MODELLED", "DROPPED", "ONLY", "REFUSED", "ALIASES", "FLAGS", "OF_THE_REPORT"]
)
def test_options_of_each_table_are_options_of_fio(table: str) -> None:
    """A name that fio does not have would be a misspelling without a complaint."""
    assert set(getattr(fio_options, table)) - MORE_OF_FIO <= real_options.FIO


def test_each_option_of_fio_is_in_one_table() -> None:
    """An option is modelled, or without effect, or refused."""
    tables = [*map(set, (fio_options.MODELLED, fio_options.DROPPED, fio_options.ONLY, fio_options.REFUSED))]
    assert sum(map(len, tables)) == len(set().union(*tables))


def test_all_options_of_dd_and_fs_mark_have_a_place() -> None:
    """All options of the tools have a place, and no others do."""
    assert {*dd._MODELLED, *dd._DROPPED, *dd._REFUSED} == real_options.DD
    options = fs_mark.OPTIONS
    names = [*options.modelled, *options.dropped, *options.refusals]
    assert sorted(name.lstrip("-") for name in names) == sorted(real_options.FS_MARK)
