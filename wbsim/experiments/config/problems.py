"""The problems of an input, which are reported together, each with its place and its remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time
from difflib import get_close_matches
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin

from pydantic import ValidationError

from wbsim.experiments.config.grammar import keys_at
from wbsim.experiments.config.linux_names import key_of
from wbsim.experiments.config.printable import printable
from wbsim.experiments.config.tree import Items, Path, Placed, Table, place_and_key, plain
from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.sim.param import BadValue, Spec, bare


class Problem(NamedTuple):
    """One error in an input, printed as ``place: key: what is wrong; what would be right``.

    Attributes:
        place: The file with the line, the option, or the function.
        key: The key or the parameter; empty if the error has none.
        message: The error and its remedy.

    Example:
        >>> import wbsim
        >>> try:
        ...     wbsim.load("question.toml").run(replications=0)
        ... except wbsim.BadInput as error:
        ...     (problem,) = error.problems
        >>> problem.place, problem.key
        ('run()', 'replications')
    """

    place: str
    key: str
    message: str

    def __str__(self) -> str:
        text = _ENDLESS.sub(lambda word: f"{word[0][:60]}...", ": ".join(part for part in self if part))
        return printable(text)


_ENDLESS: Final = re.compile(r"\S{500,}")


MOST_SHOWN: Final = 50
"""At most this many problems are reported."""
_MOST_LISTED: Final = 40


class BadInput(Exception):
    """An input has one or more errors; the text of the exception has a line for each.

    Attributes:
        problems: The errors, each with ``place``, ``key`` and ``message``; at most the first fifty, and then
            a note that there are more.

    Example:
        >>> import wbsim
        >>> study = wbsim.load("question.toml").set({"workload.lops": 2})
        >>> try:
        ...     study.run()
        ... except wbsim.BadInput as error:
        ...     print(error.problems[0].key)
        workload.lops
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        excerpt = list(problems[:MOST_SHOWN])
        if len(problems) > MOST_SHOWN:
            excerpt.append(
                Problem(problems[0].place.partition(":")[0], "", "has more problems; correct these first")
            )
        super().__init__("\n".join(str(problem) for problem in excerpt))
        self.problems = excerpt


def bad(place: str, message: str, key: str = "") -> BadInput:
    """Return, without raising it, the exception for a single problem at *place*.

    *place* is a file, an option or a function.

    *message* says what is wrong and what would be right; *key* is the key or the parameter, if there is one.
    """
    return BadInput([Problem(place, key, message)])


def from_validation(error: ValidationError, root: type[Spec], tree: Table) -> Iterator[Problem]:
    """Yield a problem for each error of pydantic, which validated *tree* as a *root*.

    All missing keys of a table are one problem, and each value has one.  The place is that of the user's
    text.
    """
    for finding in _of_one_place(_flatten(error.errors(), (), root)):
        place, key = place_and_key(tree, finding.path)
        yield Problem(place, ".".join(key), _message(finding, key))


class _Finding(NamedTuple):
    """An error of pydantic at ``path``; ``inner_path`` is the path in ``spec``, the variant or the root."""

    kind: str
    message: str
    path: Path
    inner_path: Path
    spec: type[Spec]
    value: object = None


_TYPES: Final = ("bool", "int", "float", "str")


def _flatten(errors: Sequence[Any], prefix: Path, spec: type[Spec]) -> Iterator[_Finding]:
    for error in errors:
        # Pydantic adds the type that it tried for a union: a part with a bracket, or a last part in _TYPES.
        parts = tuple(part for part in map(str, error["loc"]) if "[" not in part)
        parts = parts[:-1] if parts[-1:] and parts[-1] in _TYPES else parts
        if error["type"] == "variant":
            yield from _flatten(error["ctx"]["errors"], prefix + parts, error["ctx"]["spec"])
        else:
            message = error["msg"].removeprefix("Value error, ")
            cause = error.get("ctx", {}).get("error")
            inner_path = parts + (cause.path if isinstance(cause, BadValue) else ())
            yield _Finding(error["type"], message, prefix + inner_path, inner_path, spec, error["input"])


def _of_one_place(findings: Iterator[_Finding]) -> Iterator[_Finding]:
    """Keep one finding for all missing keys of a table and the first finding for each value.

    For a list keep the findings of its items.
    """
    firsts: dict[Path, _Finding] = {}
    gaps: dict[Path, list[_Finding]] = {}
    batch = list(findings)
    of_lists = {
        finding.path[:place] for finding in batch for place, part in enumerate(finding.path) if part.isdigit()
    }
    for finding in batch:
        if finding.path in of_lists and isinstance(finding.value, list | tuple):
            continue
        if finding.kind == "missing":
            gaps.setdefault(finding.path[:-1], []).append(finding)
        elif finding.path not in firsts:
            firsts[finding.path] = finding
            yield finding
    for table, group in gaps.items():
        names = ", ".join(finding.path[-1] for finding in group)
        message = f"lacks {names}; give a value for each"
        yield (
            group[0]
            if len(group) == 1
            else _Finding("several", message, table, group[0].inner_path[:-1], group[0].spec)
        )


def excerpt(value: object) -> str:
    """Return *value* as it would be written in a configuration, cut after 60 letters, for an error.

    >>> excerpt("none"), excerpt(True)
    ("'none'", 'true')
    """
    plain = bare(value)
    text = str(plain).lower() if isinstance(plain, bool | date | time) else repr(plain)
    return text if len(text) <= 60 else f"{text[:60]}..."


_EXPECTED: Final = {
    "bool_type": "true or false", "dict_type": "a table", "model_type": "a table", "tuple_type": "a list",
    "string_type": "a text", "int_type": "a whole number", "int_parsing": "a whole number",
    "int_from_float": "a whole number", "int_parsing_size": "a whole number", "float_type": "a number",
    "float_parsing": "a number", "model_attributes_type": "a table", "dataclass_type": "a table",
}  # fmt: skip
"""The expected value, by pydantic's name of a type error."""


def _known_at(finding: _Finding, key: Path) -> list[str]:
    """Return the known keys of the table of *finding*; *key* is the key as the user wrote it."""
    return sorted({*_fields_at(finding.spec, finding.inner_path[:-1]), *keys_at(key[:-1])})


_USUAL_DRIVES: Final = ("sata-disk", "sata-ssd")


def _like_for(kind: object, table: Path) -> str:
    """Return the end of a message on keys that *table* lacks: the ``like`` that brings them, or "".

    A new disk has no queue without ``like``.  The base of a device or a filesystem must have the same *kind*;
    a device without a kind takes that of any drive.
    """
    if "device" in table:
        names = [name for name, drive in DRIVES.items() if kind in (None, drive.device.kind)]
        name = next((usual for usual in _USUAL_DRIVES if usual in names), names[0] if names else "")
    elif table[:2] == ("machine", "disks"):
        table, name = table[:3], _USUAL_DRIVES[0]
    elif table == ("filesystem",) or (table[:1] == ("mounts",) and len(table) == 2):
        name = str(kind) if any(base.kind == kind for base in FILESYSTEMS.values()) else ""
    else:
        name = ""
    like = ".".join((*table, "like"))
    return f', or give {like} = "{name}", which brings what is missing' if name else ""


def _message(finding: _Finding, key: Path) -> str:
    """Return the message of *finding*; *key* is the key as the user wrote it."""
    if finding.kind == "extra_forbidden":
        return unknown_setting(finding.path[-1], _known_at(finding, key))
    kind = getattr(finding.spec.model_fields.get("kind"), "default", None)
    if finding.kind == "missing":
        return f"is missing; give a value{_like_for(kind, key[:-1])}"
    if finding.kind == "several":
        return f"{finding.message}{_like_for(kind, key)}"
    if key[-1:] == ("kind",) and finding.message.startswith("is missing"):
        return f"{finding.message}{_like_for(None, key[:-1])}"
    if finding.kind == "too_short":
        return "is an empty list; give at least one item"
    if finding.kind in _EXPECTED:
        return f"is {excerpt(finding.value)}; {_EXPECTED[finding.kind]} was expected"
    message = finding.message
    if message.startswith("Input should be "):
        expectation = message.removeprefix("Input should be ")
        value = "" if finding.kind == "literal_error" or expectation.startswith("a ") else "a value "
        return f"is {excerpt(finding.value)}; use {value}{expectation}"
    return (
        message[0].lower() + message[1:] if message[:1].isupper() and not message[:2].isupper() else message
    )


_RENAMED: Final = {
    "quota_pages": "nr_to_write",
    "quota": "nr_to_write_counts",
    "scheduler": "sched",
    "sb_list_lock": "inodes",
    "sb_list_ns": "inodes",
}
"""The new names of keys of earlier versions."""


def unknown_key(key: str, keys: Sequence[str]) -> str:
    """Return the message for an unknown *key*, with its new name or the most similar of *keys*.

    Without a similar one, the message lists the *keys*.

    >>> unknown_key("lops", ["loops", "files"])
    'unknown key; did you mean loops?'
    """
    if _RENAMED.get(key) in keys:
        return f"is now called {_RENAMED[key]}"
    matches = get_close_matches(key, keys, n=1, cutoff=0.7)
    if matches:
        return f"unknown key; did you mean {matches[0]}?"
    return f"unknown key; use one of {list_names(keys)}" if keys else "unknown key"


def unknown_setting(key: str, keys: Sequence[str]) -> str:
    """Return the message for an unknown *key* of a configuration, which may be Linux's name of a setting.

    For all other names it is that of `unknown_key`.
    """
    if _RENAMED.get(key) in keys:
        return unknown_key(key, keys)
    return key_of(key) or unknown_key(key, keys)


def instead(key: str, keys: Iterable[str]) -> str:
    """Return the end of a message on a missing *key*, with the one of *keys* that may be a misspelling of it.

    Return "" if none is similar.

    >>> instead("disk", ["dsk", "size"])
    '; is dsk a misspelling of it?'
    """
    matches = get_close_matches(key, keys, n=1, cutoff=0.6)
    return f"; is {matches[0]} a misspelling of it?" if matches else ""


def list_names(names: Sequence[str]) -> str:
    """Return the first 40 *names* with commas between them, and the number of the others, for an error."""
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return f"{', '.join(names[:_MOST_LISTED])}{more}"


def _fields_at(spec: type[Spec], path: Path) -> list[str]:
    """Return the fields of the spec at *path* below *spec*."""
    specs: list[type[Spec]] = [spec]
    for part in path:
        fields = [candidate.model_fields[part] for candidate in specs if part in candidate.model_fields]
        if fields:  # otherwise *part* is a name of a table or a number of a list
            specs = [inner for field in fields for inner in _specs_in(field.annotation)]
    return sorted({name for candidate in specs for name in candidate.model_fields})


def _specs_in(annotation: Any) -> list[type[Spec]]:
    """Return the specs that a field with this *annotation* may hold."""
    if get_origin(annotation) is Annotated:
        return _specs_in(annotation.__origin__)
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return [annotation]
    return [spec for part in get_args(annotation) for spec in _specs_in(part)]


class Problems:
    """Collects the problems of a configuration in ``entries``, so that all are reported together."""

    def __init__(self) -> None:
        self.entries: list[Problem] = []

    def raise_found(self) -> None:
        """Raise the problems that were found; do nothing without any.

        Raises:
            BadInput: all problems, each once.
        """
        if self.entries:
            raise BadInput(list(dict.fromkeys(self.entries)))

    @property
    def enough(self) -> bool:
        """True if there are more problems than are printed (`MOST_SHOWN`); readers then stop."""
        return len(self.entries) > MOST_SHOWN

    def add_option(self, place: str, message: str) -> None:
        """Note a problem of the command line: *message* says what is wrong at *place*."""
        self.entries.append(Problem(place, "", message))

    def wrong(self, table: Placed, entry: str, message: str) -> None:
        """Note a problem: *message* says what is wrong with *entry* of *table*.

        The table knows the place and the key.
        """
        self.entries.append(Problem(table.place_of(entry), ".".join(table.key_of(entry)), message))

    def add(self, place: str, key: Path, message: str) -> None:
        """Note a problem: *message* says what is wrong with *key*, which is written at *place*."""
        self.entries.append(Problem(place, ".".join(key), message))

    def refuse_unknown(self, table: Table, keys: Sequence[str]) -> None:
        """Note each entry of *table* that is not one of *keys*, until there are `enough` problems."""
        for name in table:
            if name not in keys and not self.enough:
                self.wrong(table, name, unknown_setting(name, keys))

    def table(self, parent: Table, entry: str) -> Table:
        """Return the table *entry* of the table *parent*; return an empty table if *entry* is missing.

        Note a problem, and return an empty table, if *entry* is anything else.
        """
        value = parent.get(entry)
        if isinstance(value, Table):
            return value
        if value is not None:
            self.wrong(parent, entry, f"is {plain(value)!r}; a table was expected")
        return parent.subtable(entry)

    def texts(self, parent: Table, entry: str) -> tuple[str, ...]:
        """Return *entry* of the table *parent*, a list of texts, as a tuple; a missing one is empty.

        Note a problem, and return an empty tuple, if *entry* is anything else.
        """
        value = parent.get(entry, ())
        if (isinstance(value, Items) and all(isinstance(text, str) for text in value)) or value == ():
            return tuple(value)
        self.wrong(parent, entry, f"is {value!r}; a list of texts was expected")
        return ()
