"""The functions that the readers of command lines share."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final, NoReturn

MOST_DIGITS: Final = 18


class CommandError(ValueError):
    """A command line that cannot be read, or that asks for something that is not modelled.

    ``option``: the given option that asks for it, or "".
    """

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option


def words_of(line: str) -> list[str]:
    """Return the words of a command line: at least one, which may be empty.

    Raises:
        CommandError: a quotation is not closed, or *line* has a null character or a line break.
    """
    if any(letter in line for letter in "\0\n"):
        raise CommandError(f"{line!r} has a line break or a null character; write one line of text")
    try:
        return shlex.split(line) or [""]
    except ValueError as error:
        raise CommandError(f"{line!r}: {error}; close the quotation") from None


def is_whole(text: str) -> bool:
    """Return whether *text* is a whole number as programs in C read it, of at most `MOST_DIGITS` digits."""
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS


def one_line(lines: Sequence[str], program: str) -> str:
    """Return the only one of *lines*.

    Raises:
        CommandError: *lines* has several lines.
    """
    if len(lines) > 1:
        raise CommandError(
            f"{len(lines)} command lines of {program}: only dd takes several lines; give each line a"
            " separate program"
        )
    return lines[0]


_UNKNOWN: Final = "unrecognized arguments"


class CommandParser(ArgumentParser):
    """argparse with errors instead of exits, and without abbreviations."""

    def __init__(self) -> None:
        super().__init__(add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """See `ArgumentParser.error`.

        Raises:
            CommandError: always.
        """
        raise CommandError(message + self._nearest(message))

    def _nearest(self, message: str) -> str:
        """Return the nearest known options, if *message* says that arguments are unknown."""
        if not message.startswith(_UNKNOWN):
            return ""
        known = [option for action in self._actions for option in action.option_strings]
        near = [get_close_matches(word.partition("=")[0], known, n=1) for word in message.split()[2:]]
        guesses = ", ".join(option for options in near for option in options)
        return f"; did you mean {guesses}?" if guesses else f"; modelled are: {', '.join(known)}"
