"""The text of a configuration to its document."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from wbsim.experiments.config.key_places import Path, lines_of_keys

MOST_LEVELS: Final = 32
"""How deep a key may lie."""
_DIGITS: Final = re.compile(r"[0-9][0-9_]{4300,}")
_DOTTED: Final = re.compile(r"""(?:[\w"'-]{1,100}[ \t]?\.[ \t]?){256}""")
_HINTS: Final = {
    "Cannot overwrite a value": "a key is given twice; leave one of them out",
    "Invalid value": "Invalid value; write texts in quotes",
}
_AT: Final = re.compile(r" \(at line ([0-9]+), (column [0-9]+)\)$")
_MOST: Final = 1 << 63


class NotToml(ValueError):
    """A text that breaks TOML's rules, in this *line*, where that is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def document_of(text: str) -> dict[str, Any]:
    """The document of a TOML *text*.

    Raises:
        NotToml: it is none.
        ValueError: it is nested deeper than anybody means.
    """
    too_deep = _DOTTED.search(text) is not None
    try:
        document = {} if too_deep else tomllib.loads(text)
        too_deep = too_deep or levels_of(document) > MOST_LEVELS
    except RecursionError:  # tomllib goes as deep as the text does
        too_deep = True
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(str(error)) from None
    except ValueError:  # Python reads no whole number of so many digits
        found = _DIGITS.search(text)
        raise _beyond(text.count("\n", 0, found.start()) + 1 if found else None) from None
    if too_deep:
        raise ValueError(f"is nested deeper than {MOST_LEVELS} levels; no key is")
    if (path := _beyond_64_bits(document, ())) is not None:
        line = next((line for at, line in lines_of_keys(text) if at == path), None)
        raise _beyond(line, ".".join(path).removeprefix("scenario."))
    return document


def _not_toml(told: str) -> NotToml:
    """What tomllib *told*, with the remedy where that is plain."""
    at = _AT.search(told)
    what = told[: at.start()] if at else told
    where = f" ({at[2]})" if at else ""
    return NotToml(f"not TOML: {_HINTS.get(what, what)}{where}", int(at[1]) if at else None)


def _beyond(line: int | None, key: str = "") -> NotToml:
    of = f"{key}: " if key else ""
    return NotToml(f"{of}not TOML: a whole number has 64 bits; give a smaller one", line)


def _beyond_64_bits(value: Any, path: Path) -> Path | None:
    """The key of the first whole number that TOML has none of."""
    if isinstance(value, Mapping | list):
        below = value.items() if isinstance(value, Mapping) else enumerate(value)
        found = (_beyond_64_bits(item, (*path, str(key))) for key, item in below)
        return next((at for at in found if at is not None), None)
    return path if isinstance(value, int) and not -_MOST <= value < _MOST else None


def levels_of(value: Any) -> int:
    """How deep tables and lists are nested in *value*, counted without recursion."""
    levels, layer = 0, [value]
    while layer := [below for of in layer for below in _below(of)]:
        levels += 1
    return levels


def _below(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
