"""Parse the text of a configuration to its tree, with the line of each key.

tomllib checks the text and returns the values, but no lines.  This module finds the lines in a text that
tomllib has accepted.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Final

from wbsim.experiments.config.tree import Path, Table, place_tree

MOST_LEVELS: Final = 32
"""The upper bound for the parts of a key, and for nested tables and lists."""
_DIGITS: Final = re.compile(r"[0-9][0-9_]{4300,}")
_DOTTED: Final = re.compile(r"""(?:[\w"'-]{1,100}[ \t]?\.[ \t]?){256}""")
_HINTS: Final = {
    "Cannot overwrite a value": "a key is given twice; remove one of them",
    "Invalid value": "Invalid value; write texts in quotes",
}
_ERROR_AT: Final = re.compile(r" \(at line ([0-9]+), (column [0-9]+)\)$")
_MOST: Final = 1 << 63


class NotToml(ValueError):
    """The error of a text that breaks a rule of TOML; *line* is None if the line is unknown."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def parse_toml(text: str, name: str) -> Table:
    """Return the tree of a TOML *text*; its places are ``name:line``, where a key occurs first.

    Raises:
        NotToml: *text* is not valid TOML, or has a number of more than 64 bits.
        ValueError: *text* is nested deeper than `MOST_LEVELS`.
    """
    document, lines = document_of(text), dict[Path, str]()
    for path, line in lines_of_keys(text):
        lines.setdefault(path, f"{name}:{line}")
    tree: Table = place_tree(document, (), name, lines)
    return tree


def document_of(text: str) -> dict[str, object]:
    """Return the document of a TOML *text*, in plain dictionaries and lists.

    Raises:
        NotToml: *text* is not valid TOML, or has a number of more than 64 bits.
        ValueError: *text* is nested deeper than `MOST_LEVELS`.
    """
    too_deep = _DOTTED.search(text) is not None
    try:
        document = {} if too_deep else tomllib.loads(text)
        too_deep = too_deep or levels_of(document) > MOST_LEVELS
    except RecursionError:  # tomllib calls itself once a level
        too_deep = True
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(str(error)) from None
    except ValueError:  # Python refuses whole numbers of more than 4300 digits
        match = _DIGITS.search(text)
        raise _too_large(text.count("\n", 0, match.start()) + 1 if match else None) from None
    if too_deep:
        raise ValueError(f"is nested deeper than {MOST_LEVELS} levels; use at most {MOST_LEVELS}")
    if (path := _beyond_64_bits(document, ())) is not None:
        line = next((line for key, line in lines_of_keys(text) if key == path), None)
        raise _too_large(line, ".".join(path).removeprefix("scenario."))
    return document


def _not_toml(message: str) -> NotToml:
    """Return the error for a *message* of tomllib, with a remedy if `_HINTS` has one."""
    match = _ERROR_AT.search(message)
    reason = message[: match.start()] if match else message
    where = f" ({match[2]})" if match else ""
    return NotToml(f"not TOML: {_HINTS.get(reason, reason)}{where}", int(match[1]) if match else None)


def _too_large(line: int | None, key: str = "") -> NotToml:
    prefix = f"{key}: " if key else ""
    return NotToml(f"{prefix}not TOML: a whole number exceeds 64 bits; give a smaller one", line)


def _beyond_64_bits(value: object, path: Path) -> Path | None:
    """Return the key of the first whole number that exceeds TOML's 64 bits; None without one."""
    if isinstance(value, Mapping | list):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        paths = (_beyond_64_bits(item, (*path, str(key))) for key, item in items)
        return next((inner for inner in paths if inner is not None), None)
    return path if isinstance(value, int) and not -_MOST <= value < _MOST else None


def levels_of(value: object) -> int:
    """Return the depth of the nested tables and lists in *value*, without recursion.

    A table or a list counts as a level if it has an entry.

    >>> levels_of(1), levels_of([1]), levels_of({"a": [1]})
    (0, 1, 2)
    """
    levels, layer = 0, [value]
    while layer := [child for parent in layer for child in _children(parent)]:
        levels += 1
    return levels


def _children(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_PART: Final = re.compile(r"""[ \t]*(?:"((?:\\.|[^"\\])*)"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*""")
_TEXT: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:\\.|[^"\\])*"|' + r"'[^']*'", re.DOTALL
)
_BARE: Final = re.compile(r"[^,\]}#\n]*")


def lines_of_keys(text: str) -> Iterator[tuple[Path, int]]:
    """Yield the path of each key of a valid TOML *text*, and of each entry of a list, with its line.

    The first line is 1.  A path comes again with each line that names it: ``a.b = 1`` and ``a.c = 2`` both
    yield ``("a",)``.

    >>> list(lines_of_keys("a.b = 1"))
    [(('a',), 1), (('a', 'b'), 1)]
    """
    return _Lines(text).keys()


def _unescaped(part: str) -> str:
    """Return a part of a key without its escapes."""
    return str(tomllib.loads(f'part = "{part}"')["part"]) if "\\" in part else part


class _Lines:
    """Finds the keys of a text, from left to right, with their lines."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._line_position, self._line = 0, 1
        self._entries: dict[Path, int] = {}  # the number of the last entry of each array of tables

    def keys(self) -> Iterator[tuple[Path, int]]:
        """See `lines_of_keys`."""
        table: Path = ()
        previous = -1
        while previous < self._skip(_BLANK) < len(self._text):
            previous = self._position
            if self._text[self._position] == "[":
                line = self._line_now()
                for table in self._header():
                    yield table, line
            else:
                yield from self._pair(table)

    def _header(self) -> Iterator[Path]:
        """Yield the paths of the tables that a header names; the last is the table that begins there."""
        double = self._text.startswith("[[", self._position)
        self._position += 1 + double
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
        self._position += 1 + double

    def _pair(self, table: Path) -> Iterator[tuple[Path, int]]:
        line, parts = self._line_now(), self._dotted()
        for length in range(1, len(parts) + 1):
            yield table + parts[:length], line
        self._position += 1  # the =
        yield from self._value(table + parts)

    def _value(self, path: Path) -> Iterator[tuple[Path, int]]:
        self._skip(_BLANK)
        match self._text[self._position : self._position + 1]:
            case "[":
                yield from self._inside("]", path)
            case "{":
                yield from self._inside("}", path)
            case '"' | "'":
                self._skip(_TEXT)
            case _:
                self._skip(_BARE)

    def _inside(self, end: str, path: Path) -> Iterator[tuple[Path, int]]:
        """Yield the keys between the brackets of a list or of a table."""
        number = 0
        self._position += 1
        while self._skip(_BLANK) < len(self._text) and self._text[self._position] != end:
            if self._text[self._position] == ",":
                self._position += 1
            elif end == "}":
                yield from self._pair(path)
            else:
                entry = (*path, str(number))
                yield entry, self._line_now()
                yield from self._value(entry)
                number += 1
        self._position += 1

    def _dotted(self) -> Path:
        parts = []
        while match := _PART.match(self._text, self._position):
            parts.append(_unescaped(next(part for part in match.groups() if part is not None)))
            self._position = match.end()
            if self._text[self._position : self._position + 1] != ".":
                break
            self._position += 1
        return tuple(parts)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        if match := pattern.match(self._text, self._position):
            self._position = match.end()
        return self._position

    def _line_now(self) -> int:
        self._line += self._text.count("\n", self._line_position, self._position)
        self._line_position = self._position
        return self._line
