"""Programs: from the command lines of a configuration to workloads."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path as FilePath
from pathlib import PurePosixPath
from typing import Any, Final

from wbsim.experiments.config.inputs import Inputs
from wbsim.experiments.config.key_places import Path
from wbsim.experiments.config.merge import merged, plain
from wbsim.experiments.config.problems import unknown_key
from wbsim.models.variants import variants
from wbsim.models.workloads.command_line import CommandError, words_of

_COPY: Final = "for a copy of N MiB write dd if=/dev/zero of=DIR/FILE bs={size}k count={calls}"
_UNPACK: Final = "for files that are unpacked write fs_mark -S0 -n FILES -s BYTES -d DIR"
_SAME_WRITES: Final = {
    "cp": _COPY.format(size=128, calls="8N"),
    "cat": _COPY.format(size=128, calls="8N"),
    "mv": _COPY.format(size=128, calls="8N"),
    "rsync": _COPY.format(size=32, calls="32N"),
    "scp": _COPY.format(size=32, calls="32N"),
    "tar": _UNPACK,
    "unzip": _UNPACK,
    "git": _UNPACK,
}
"""By program that is not modelled: the modelled command that writes as it does (buffer sizes are [R])."""


def programs_of(of: Inputs, tables: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of all programs, by name: that of the program itself where none is given."""
    if "programs" not in tables:
        program = _program(of, ("workload",), tables.get("workload", {}))
        if program is None:
            return {}
        name = program["workload"]["kind"]
        of.writes(("programs", name, "workload"), ("workload",))
        of.writes(("programs", name), ("workload",))
        of.writes(("programs",), ("workload",))
        return {name: program}
    if "workload" in tables:
        of.wrong(
            ("workload",), "is for one program without a name; there are programs, so give it to one of them"
        )
    given = tables["programs"]
    named = given.items() if isinstance(given, Mapping) else [(None, entry) for entry in given]
    programs: dict[str, Any] = {}
    for number, (name, entry) in enumerate(named):
        path = ("programs", name if name is not None else str(number))
        program = _program(of, path, {"command": entry} if not isinstance(entry, Mapping) else entry)
        if program is not None:
            kind = program["workload"]["kind"]
            same = sum(other["workload"]["kind"] == kind for other in programs.values())
            one = name if name is not None else kind if not same else f"{kind}-{same + 1}"
            of.writes(("programs", one, "workload"), path)
            of.writes(("programs", one), path)
            programs[one] = program
    return programs


def _program(of: Inputs, path: Path, entry: Any) -> dict[str, Any] | None:
    """One program, from its command and what is given beside that."""
    if not isinstance(entry, Mapping):
        of.wrong(path, f"is {entry!r}; a table was expected")
        return None
    given = dict(entry)
    command = plain(given.pop("command", None))
    own = {"start": 0, **{name: given.pop(name) for name in ("start", "memory") if name in given}}
    if "kind" in given:
        of.wrong((*path, "kind"), "follows from the command; leave it out")
        return None
    lines = [command] if isinstance(command, str) else command
    known = ("command", "start", "memory")
    for key in given:
        if command is None and get_close_matches(key, known, n=1, cutoff=0.7):
            of.wrong((*path, key), unknown_key(key, known))
            return None
    if not isinstance(lines, list) or not lines or not all(isinstance(line, str) for line in lines):
        of.wrong((*path, "command"), f"is missing; give a command line of {_known_programs()}")
        return None
    try:
        fields = _fields_of([_with_job_files(line, of.directory) for line in lines])
    except CommandError as error:
        of.wrong((*path, "command"), str(error))
        return None
    of.moved |= {(*path, field): (*path, "command") for field in fields if field not in given}
    return {**own, "workload": merged(fields, given)}


def _with_job_files(line: str, directory: FilePath) -> str:
    """A command *line* with the paths of the job files that lie in *directory*."""
    if ".fio" not in line:
        return line
    words = words_of(line)
    found = [
        str(directory / word) if word.endswith(".fio") and (directory / word).is_file() else word
        for word in words
    ]
    return shlex.join(found) if found != words else line


def _fields_of(lines: list[str]) -> dict[str, Any]:
    """The workload that command *lines* ask for, with what the program itself costs."""
    name = PurePosixPath((lines[0].split() or [""])[0]).name
    for variant in variants("workloads").values():
        if name in variant.spec.programs:
            return {**variant.spec.fields_of(lines), **variant.spec.costs}
    if name in _SAME_WRITES:
        raise CommandError(f"{name} is not modelled; {_SAME_WRITES[name]}")
    raise CommandError(f"{lines[0]!r} is not a command line of {_known_programs()}")


def _known_programs() -> str:
    *others, last = sorted(variant.spec.programs[0] for variant in variants("workloads").values())
    return f"{', '.join(others)} or {last}"
