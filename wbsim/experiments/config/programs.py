"""Programs: from the command lines of a configuration to workloads."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path as FilePath
from pathlib import PurePosixPath
from typing import Any, Final

from wbsim.experiments.config.grammar import PROGRAM_KEYS
from wbsim.experiments.config.likes import Likes
from wbsim.experiments.config.problems import excerpt, unknown_key
from wbsim.experiments.config.tree import Items, Table, entries_of, merge, plain
from wbsim.models.kinds import kinds
from wbsim.models.workloads.command_line import CommandError, words_of
from wbsim.models.workloads.fio_sections import Changes, change_place, lines_of
from wbsim.models.workloads.spec import FROM_THE_COMMAND

_COPY: Final = "for a copy of N MiB write dd if=/dev/zero of=DIR/FILE bs={size}k count={calls}"
_UNPACK: Final = "for unpacked files write fs_mark -S0 -n FILES -s BYTES -d DIR"
_SAME_WRITES: Final = {
    "cp": _COPY.format(size=128, calls="8N"),
    "cat": _COPY.format(size=128, calls="8N"),
    "rsync": _COPY.format(size=32, calls="32N"),
    "scp": _COPY.format(size=32, calls="32N"),
    "tar": _UNPACK,
    "unzip": _UNPACK,
    "git": _UNPACK,
}
"""For each program that is not modelled: a modelled command with the same writes (buffer sizes are [R])."""


def programs_of(likes: Likes, scenario: Table) -> Table:
    """Return all programs of *scenario* by name, each with its ``start`` and its ``workload``.

    A program also has ``after`` and ``memory`` if the user gave them.  The kind of its workload names a
    program without a name, such as fs_mark, and a second one is fs_mark-2.  A program with a problem, which
    is noted in *likes*, is left out.  `scenarios` calls this.
    """
    if "programs" not in scenario:
        table = likes.problems.table(scenario, "workload")
        is_table = isinstance(scenario.get("workload", table), Table)
        program = _program(likes, table) if is_table else None
        entries = {} if program is None else {program["workload"]["kind"]: program}
        return Table(entries).set_place(table.key, table.where, {})
    if "workload" in scenario:
        message = (
            "is the only program, without a name, but the scenario has programs; move it into one of them"
        )
        likes.problems.wrong(scenario, "workload", message)
    listing = scenario["programs"]
    if not isinstance(listing, Items):
        listing = likes.problems.table(scenario, "programs")
    pairs = listing.items() if isinstance(listing, Table) else enumerate(listing)
    programs: dict[str, Any] = {}
    for name, entry in pairs:
        table = entry if isinstance(entry, Table) else listing.subtable(str(name), {"command": entry})
        program = _program(likes, table)
        if program is not None:
            kind = program["workload"]["kind"]
            twin_count = sum(earlier["workload"]["kind"] == kind for earlier in programs.values())
            numbered = kind if not twin_count else f"{kind}-{twin_count + 1}"
            programs[name if isinstance(name, str) else numbered] = program
    return Table(programs).set_place(
        listing.key, listing.where, listing.places if isinstance(listing, Table) else {}
    )


def _program(likes: Likes, table: Table) -> Table | None:
    """Return the program of *table*, from its command and its other keys; None if it has a problem."""
    problems = likes.problems
    command = plain(table.get("command"))
    own = {"start": 0, **{name: table[name] for name in ("start", "after", "memory") if name in table}}
    fields = table.omit(*PROGRAM_KEYS)
    for key in FROM_THE_COMMAND:
        if key in fields:
            problems.wrong(table, key, "follows from the command; leave it out")
            return None
    lines = [command] if isinstance(command, str) else command
    for key in fields:
        if command is None and get_close_matches(key, PROGRAM_KEYS, n=1, cutoff=0.7):
            problems.wrong(table, key, unknown_key(key, PROGRAM_KEYS))
            return None
    if not isinstance(lines, list) or not lines or not all(isinstance(line, str) for line in lines):
        fault = "is missing" if command is None else f"is {excerpt(command)}"
        problems.wrong(table, "command", f"{fault}; give a command line of {_known_programs()}")
        return None
    jobs = {key: value for key, value in fields.items() if isinstance(value, Table)}
    fields = fields.omit(*jobs)
    try:
        changes = {job: _options_of_job(options) for job, options in jobs.items()}
        plain_lines = [_without_prefix(line) for line in lines]
        lines = [_with_job_files(line, likes.directory) for line in plain_lines]
        command_fields = _fields_of(lines, Changes(changes, likes.texts))
    except CommandError as error:
        for complaint in error.complaints:
            problems.wrong(*_key_of(complaint, jobs) or (table, "command", complaint))
        return None
    place = table.place_of("command")
    workload = Table(command_fields).set_place(table.key, "", dict.fromkeys(command_fields, place))
    return table.like({**own, "workload": merge(workload, fields)})


_CONTINUED: Final = re.compile(r"\\\n[ \t]*")
_PREFIX: Final = re.compile(r"\s*(?:sudo|time|nohup|exec)\s+(?=[^\s-])")
_BEHIND: Final = re.compile(r"\s*(?:;|&&|&)\s*$")


def _without_prefix(line: str) -> str:
    r"""Return the command *line* in one line, without sudo, time and a last semicolon.

    >>> _without_prefix("sudo time fio --name=w \\\n    --rw=write ;")
    'fio --name=w --rw=write'
    """
    line = _BEHIND.sub("", _CONTINUED.sub("", line))
    while (match := _PREFIX.match(line)) is not None:
        line = line[match.end() :]
    return line


def _with_job_files(line: str, directory: FilePath) -> str:
    """Return the command *line*; a job file (.fio) that lies in *directory* becomes its path there."""
    if ".fio" not in line:
        return line
    words = words_of(line)
    new_words = [
        str(directory / word) if word.endswith(".fio") and (directory / word).is_file() else word
        for word in words
    ]
    return shlex.join(new_words) if new_words != words else line


def _options_of_job(table: Table) -> dict[str, object]:
    """Return the options of *table*, the changes of a job, without their origins.

    Raises:
        CommandError: an option is a table or a list.
    """
    options = {option: plain(value) for option, value in table.items()}
    for option, value in options.items():
        if isinstance(value, Table | Items | list):
            path = change_place(table.key[-1], option)
            raise CommandError(f"{path}: an option has one value; write it as in a job file")
    return options


def _key_of(complaint: str, jobs: Mapping[str, Table]) -> tuple[Table, str, str] | None:
    """Return the table and the key of the change in *jobs* that *complaint* is about, and its message.

    Return None if *complaint* is about the command.
    """
    place, _, message = complaint.partition(": ")
    for job, options in jobs.items():
        for option in options:
            if place == change_place(job, option):
                return options, option, message
    return None


def in_job_files(scenario: Table, directory: FilePath, name: str) -> bool:
    """Return whether a job file of the commands of *scenario*, or a file that it includes, has ``{name}``.

    So a swept name may stand for a text in a job file.  A relative path begins at *directory*.  Commands and
    files that cannot be read are left out, because they are reported when they are read as programs.
    """
    programs = scenario.get("programs", {})
    entries = programs if isinstance(programs, Items) else entries_of(programs).values()
    return any(
        f"{{{name}}}" in text
        for table in (scenario.get("workload"), *entries)
        for line in _lines_of(table.get("command") if isinstance(table, Table) else table)
        for text in _texts_of_job_files(line, directory)
    )


def _lines_of(command: object) -> list[str]:
    """Return the command lines of *command*, which is a text or a list of texts."""
    lines = plain(command)
    return [line for line in (lines if isinstance(lines, list) else [lines]) if isinstance(line, str)]


def _texts_of_job_files(line: str, directory: FilePath) -> Iterator[str]:
    """Yield the lines of the job files that the command *line* names, as long as they can be read."""
    with suppress(CommandError):
        for word in words_of(_with_job_files(_without_prefix(line), directory)):
            if word.endswith(".fio"):
                yield from (text for _, text in lines_of(FilePath(word)))


def _fields_of(lines: list[str], changes: Changes) -> dict[str, object]:
    """Return the fields of the workload of the command *lines*, with the costs of the program itself.

    *changes* are those of the configuration for jobs of fio.
    """
    name = PurePosixPath((lines[0].split() or [""])[0]).name
    for kind in kinds("workloads").values():
        if name in kind.spec.programs:
            has_jobs = kind.spec.programs == ("fio",)
            if changes.options and not has_jobs:
                raise CommandError(f"{name} has no job {next(iter(changes.options))!r}; only fio has jobs")
            more = (changes,) if has_jobs else ()
            fields = kind.spec.fields_of(lines, *more)  # rm FILE is of another kind than rm -r
            return {**fields, **kinds("workloads")[str(fields["kind"])].spec.costs}
    if name in _SAME_WRITES:
        raise CommandError(f"{name} is not modelled; {_SAME_WRITES[name]}")
    raise CommandError(f"{lines[0]!r} is not a command line of {_known_programs()}")


def _known_programs() -> str:
    *names, last = sorted(kind.spec.programs[0] for kind in kinds("workloads").values())
    return f"{', '.join(names)} or {last}"
