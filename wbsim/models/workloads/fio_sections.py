"""The options of a fio command, section by section: those of its command line, or those of its job files.

On the command line, each ``--name`` begins a job, and options before the first one hold for all jobs.  As
getopt_long_only(3) does, fio takes one dash for two, and an option's value after ``=`` or a blank.

A job file has sections: ``[global]`` holds for the jobs below it, and each other section is a job.  A line
ends at ``;`` or ``#``, wherever it stands.  ``include FILE`` stands for the lines of FILE.  Several job files
run one after another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from wbsim.models.workloads.command_line import CommandError, words_of
from wbsim.sim.text_files import text_of

FLAGS: Final = frozenset({
    "bs_unaligned", "blocksize_unaligned", "norandommap", "time_based", "verify_only", "exitall",
    "exitall_on_error", "stonewall", "wait_for_previous", "new_group", "thread", "group_reporting",
    "zero_buffers", "refill_buffers",
})  # fmt: skip
"""The options of jobs that take a value only after ``=`` (FIO_OPT_STR_SET)."""
OF_THE_REPORT: Final = {
    "minimal": False, "append-terse": False, "warnings-fatal": False, "bandwidth-log": False, "output": True,
    "output-format": True, "eta": True, "eta-interval": True, "eta-newline": True, "terse-version": True,
    "status-interval": True, "max-jobs": True, "alloc-size": True, "idle-prof": True, "debug": True,
    "aux-path": True, "inflate-log": True, "latency-log": True,
}  # fmt: skip
"""The options of fio itself that change its report only, and whether each takes a value."""


class Given(NamedTuple):
    """An option as it was given: the ``place`` (file and line, or ""), its ``name``, and its ``value``.

    The value is None if there is no ``=``, and no word that could be it.
    """

    place: str
    name: str
    value: str | None

    @property
    def text(self) -> str:
        """Return the option as its user wrote it, without dashes."""
        return self.name if self.value is None else f"{self.name}={self.value}"


Section = list[Given]
"""The options of a job, those that all jobs share first; one of them is its name."""


class Changes(NamedTuple):
    """The changes of a configuration in the jobs of a fio command.

    * ``options``: options that replace those of jobs, by the name of the job.
    * ``texts``: texts that replace ``{name}`` in job files, by the name.
    """

    options: Mapping[str, Mapping[str, object]] = MappingProxyType({})
    texts: Mapping[str, str] = MappingProxyType({})


NO_CHANGES: Final = Changes()


def sections_of(line: str, changes: Changes = NO_CHANGES) -> tuple[list[Section], list[str]]:
    """Return the jobs of a fio command *line*, and those of its options that change only its report.

    *changes* are those of a configuration (`Changes`).

    >>> sections, report = sections_of("fio --minimal --bs=4k --name=a --name=b")
    >>> [[option.text for option in section] for section in sections], report
    ([['bs=4k', 'name=a'], ['bs=4k', 'name=b']], ['minimal'])

    Raises:
        CommandError: the line is not a fio command, an option lacks its value, or a job file cannot be read.
    """
    program, *words = words_of(line)
    if program.rsplit("/", 1)[-1] != "fio":
        raise CommandError(f"{line!r} is not a fio command; begin with fio")
    options, files, dropped = _given_on(words)
    shared, *jobs = _by_job(options)
    if jobs and files:
        raise CommandError("jobs of the command line and job files are two runs; give one of them")
    if files and shared:
        raise CommandError(
            f"--{shared[0].text} next to a job file is no option of its jobs; write it into its [global]"
        )
    if not files:
        return _apply([[*shared, *job] for job in jobs], changes.options), dropped
    sections = []
    for number, name in enumerate(files):
        for place, section in enumerate(_sections(Path(name), changes.texts)):
            waits = [Given("", "stonewall", None)] if number and not place else []
            sections.append([*section, *waits])
    return _apply(sections, changes.options), dropped


def _apply(sections: list[Section], changes: Mapping[str, Mapping[str, object]]) -> list[Section]:
    """Return *sections* with the *changes*.

    Raises:
        CommandError: a change is for a job that does not exist.
    """
    names = {_name_of(section) for section in sections}
    for name in changes:
        if name not in names:
            raise CommandError(f"there is no job {name!r}; use one of {', '.join(sorted(names))}")
    return [
        [*section, *_given_for(name, changes.get(name, {}))]
        for name, section in ((_name_of(section), section) for section in sections)
    ]


def _given_for(job: str, change: Mapping[str, object]) -> Section:
    """Return the options of a *change* of *job*; true and false are 1 and 0."""
    return [
        Given(change_place(job, option), option, str(int(value) if isinstance(value, bool) else value))
        for option, value in change.items()
    ]


def change_place(job: str, option: str) -> str:
    """Return the place of an *option* that a configuration changes in *job*, as the key of an error.

    >>> change_place("writers", "bs")
    'writers.bs'
    """
    return f"{job}.{option}"


def _name_of(section: Section) -> str:
    return next((str(option.value) for option in reversed(section) if option.name == "name"), "")


def _given_on(words: Sequence[str]) -> tuple[list[Given], list[str], list[str]]:
    """Return the options of jobs, the job files, and fio's options for its report among *words*."""
    options, files, dropped = list[Given](), list[str](), list[str]()
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            files.append(word)
            continue
        name, equals, text = word.lstrip("-").partition("=")
        value = text if equals else None
        takes_value = OF_THE_REPORT.get(name, name not in FLAGS)
        if value is None and takes_value:
            value = next(rest, None)
            if value is None:
                raise CommandError(f"{word} is the last word, and needs a value; write {word}=VALUE")
        if name in OF_THE_REPORT:
            dropped.append(name)
        else:
            options.append(Given("", name, value))
    return options, files, dropped


def _by_job(options: Sequence[Given]) -> list[Section]:
    """Return the options before the first name, and then those of each name."""
    parts: list[Section] = [[]]
    for option in options:
        if option.name == "name":
            parts.append([])
        parts[-1].append(option)
    return parts


def _sections(path: Path, texts: Mapping[str, str]) -> Iterator[Section]:
    """Yield the jobs of a job file, each behind the options of the global sections before it.

    *texts*: see `Changes`.
    """
    common: Section = []
    job: Section | None = None
    for place, template in lines_of(path):
        line = template
        for name, text in texts.items():
            line = line.replace(f"{{{name}}}", text)
        if line[0] == "[":
            if job is not None and job is not common:
                yield job
            name = line[1:].removesuffix("]")
            if not name.strip() or not name.isprintable() or not line.endswith("]"):
                raise CommandError(f"{place}: {line!r} has no printable job name; write one, such as [job]")
            job = common if name.startswith("global") else [*common, Given(place, "name", name)]
        elif job is None:
            raise CommandError(f"{place}: {line!r} is before the first section; begin with [global]")
        else:
            key, equals, value = line.partition("=")
            job.append(Given(place, key.strip(), os.path.expandvars(value.strip()) if equals else None))
    if job is not None and job is not common:
        yield job


def lines_of(path: Path, including: Mapping[Path, str] = MappingProxyType({})) -> Iterator[tuple[str, str]]:
    """Yield the place (FILE:NUMBER) and the text of each line of a job file, without comments.

    Empty lines are left out.  The lines of an included file replace the line that includes it.
    *including*: the files that include this one, the outermost first, each with the place of its line.

    Raises:
        CommandError: the file cannot be read, or includes itself.
    """
    where = "".join(f"{place}: " for place in [*including.values()][-1:])
    if path in including:
        raise CommandError(f"{where}{path} includes itself; leave the line out")
    try:
        text = text_of(path)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is not UTF-8 text"
        message = f"the job file {path} cannot be read: {why}; give a readable text file"
        raise CommandError(f"{where}{message}") from None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition(";")[0].partition("#")[0].strip()
        word, _, included = line.partition(" ")
        if word == "include":
            other = Path(included.strip())
            other = other if other.exists() else path.parent / other
            yield from lines_of(other, {**including, path: f"{path}:{number}"})
        elif line:
            yield f"{path}:{number}", line
