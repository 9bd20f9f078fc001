"""Where each key of a configuration stands, as ``file:line``.

tomllib checks the text and gives its values, but no lines; the lines are read here from a text that it took.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

Path = tuple[str, ...]
"""A key in a configuration, part by part; an entry of a list is its number."""


class Places:
    """Where each key of a TOML text stands.

    Overrides have places of their own.  One case of a configuration may have more of them (`of_case`): where
    a point of the sweep sets a key, and the lines of the files that a ``like`` names.
    """

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._places: dict[Path, str] = {}
        self._overridden: list[Path] = []
        self._moved: Mapping[Path, Sequence[Path]] = {}
        self._files: Sequence[tuple[Path, Places]] = ()
        for path, line in lines_of_keys(text):
            self._places.setdefault(path, f"{name}:{line}")

    def of_case(self, moved: Mapping[Path, Sequence[Path]], files: Sequence[tuple[Path, Places]]) -> Places:
        """The same for a case.  In it the keys of *moved* are written elsewhere, at the first of these places
        that there is, and *files* are put below some keys.
        """
        case = Places(self._name, "")
        case._places, case._overridden = self._places, self._overridden
        case._moved, case._files = moved, files
        return case

    def override(self, path: Path, place: str) -> None:
        """*path* was set elsewhere."""
        self._places[path] = place
        self._overridden.append(path)

    def of(self, *paths: Path) -> str:
        """The place of the first of *paths* that is here in full, else of the nearest key around the last.

        With it comes what was set elsewhere below that key, which may be what is wrong there.
        """
        last = paths[-1]
        around = [last[:length] for length in range(len(last), 0, -1)]
        known = (self._places.get(path) for path in paths[:-1])
        found = [next(filter(None, [self._moved_to(last), *known, *map(self._at, around)]), self._name)]
        for path in self._overridden:
            if any(path[: len(at)] == at for at in paths):
                found.append(self._places[path])
        return ", ".join(dict.fromkeys(found))

    def _moved_to(self, path: Path) -> str | None:
        for key, places in self._moved.items():
            if path[: len(key)] == key:
                rest = path[len(key) :]
                found = (self._nearest(at, rest) for at in places)
                return next(filter(None, found), None)
        return None

    def _nearest(self, at: Path, rest: Path) -> str | None:
        """Where *rest* is below *at*, or as much of it as there is."""
        if at not in self._places:
            return None
        lengths = range(len(rest), -1, -1)
        return next(place for n in lengths if (place := self._places.get(at + rest[:n])))

    def _at(self, path: Path) -> str | None:
        if path in self._places:
            return self._places[path]
        within = (file._places.get(path[len(key) :]) for key, file in self._files if path[: len(key)] == key)
        return next(filter(None, within), None)


_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_PART: Final = re.compile(r"""[ \t]*(?:"((?:\\.|[^"\\])*)"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*""")
_TEXT: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:\\.|[^"\\])*"|' + r"'[^']*'", re.DOTALL
)
_BARE: Final = re.compile(r"[^,\]}#\n]*")


def lines_of_keys(text: str) -> Iterator[tuple[Path, int]]:
    """Every key of a TOML *text*, and every entry of a list, with its line (from 1)."""
    return _Lines(text).keys()


def _unescaped(part: str) -> str:
    """A part of a key without its escapes."""
    return str(tomllib.loads(f'part = "{part}"')["part"]) if "\\" in part else part


class _Lines:
    """Goes through a text from left to right; what it meets on the way are keys with their lines."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counted, self._line = 0, 1
        self._entries: dict[Path, int] = {}  # of arrays of tables, so far

    def keys(self) -> Iterator[tuple[Path, int]]:
        """See `lines_of_keys`."""
        table: Path = ()
        before = -1
        while before < self._skip(_BLANK) < len(self._text):
            before = self._at
            if self._text[self._at] == "[":
                line = self._line_now()
                for table in self._header():
                    yield table, line
            else:
                yield from self._pair(table)

    def _header(self) -> Iterator[Path]:
        """The tables that a header names; the last is the one that it begins."""
        double = self._text.startswith("[[", self._at)
        self._at += 1 + double
        path: Path = ()
        parts = self._dotted()
        for number, part in enumerate(parts, 1):
            path = (*path, part)
            if double and number == len(parts):
                self._entries[path] = self._entries.get(path, -1) + 1
            yield path
            if path in self._entries:
                path = (*path, str(self._entries[path]))
                yield path
        self._at += 1 + double

    def _pair(self, table: Path) -> Iterator[tuple[Path, int]]:
        line, parts = self._line_now(), self._dotted()
        for length in range(1, len(parts) + 1):
            yield table + parts[:length], line
        self._at += 1  # the =
        yield from self._value(table + parts)

    def _value(self, path: Path) -> Iterator[tuple[Path, int]]:
        self._skip(_BLANK)
        match self._text[self._at : self._at + 1]:
            case "[":
                yield from self._inside("]", path)
            case "{":
                yield from self._inside("}", path)
            case '"' | "'":
                self._skip(_TEXT)
            case _:
                self._skip(_BARE)

    def _inside(self, end: str, path: Path) -> Iterator[tuple[Path, int]]:
        """What stands between brackets, of a list or of a table."""
        number = 0
        self._at += 1
        while self._skip(_BLANK) < len(self._text) and self._text[self._at] != end:
            if self._text[self._at] == ",":
                self._at += 1
            elif end == "}":
                yield from self._pair(path)
            else:
                entry = (*path, str(number))
                yield entry, self._line_now()
                yield from self._value(entry)
                number += 1
        self._at += 1

    def _dotted(self) -> Path:
        parts = []
        while match := _PART.match(self._text, self._at):
            parts.append(_unescaped(next(part for part in match.groups() if part is not None)))
            self._at = match.end()
            if self._text[self._at : self._at + 1] != ".":
                break
            self._at += 1
        return tuple(parts)

    def _skip(self, what: re.Pattern[str]) -> int:
        if match := what.match(self._text, self._at):
            self._at = match.end()
        return self._at

    def _line_now(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line
