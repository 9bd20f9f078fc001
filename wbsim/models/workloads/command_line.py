"""What the readers of workloads' own command lines share."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final, NoReturn

MOST_DIGITS: Final = 18


class CommandError(ValueError):
    """A command line that cannot be read, or that asks for what is not modelled, by this *option*, if it is
    one that was given.
    """

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option


def words_of(line: str) -> list[str]:
    """The words of a command line; at least one, which may be empty.

    Raises:
        CommandError: a quotation is not closed, or no line can have what is in it.
    """
    if any(letter in line for letter in "\0\n"):
        raise CommandError(f"{line!r} is no command line; write one line of text")
    try:
        return shlex.split(line) or [""]
    except ValueError as error:
        raise CommandError(f"{line!r}: {error}; close it") from None


def is_whole(text: str) -> bool:
    """Whether *text* is a whole number as programs in C read it, of no more digits than one has."""
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS


def one_line(lines: Sequence[str], program: str) -> str:
    """The only one of *lines*.

    Raises:
        CommandError: there are several.
    """
    if len(lines) > 1:
        raise CommandError(
            f"{len(lines)} command lines of {program}: only dds are started together; give each a program"
            " of its own"
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
        """The options that are nearest to those that *message* says are none."""
        if not message.startswith(_UNKNOWN):
            return ""
        known = [option for action in self._actions for option in action.option_strings]
        near = [get_close_matches(word.partition("=")[0], known, n=1) for word in message.split()[2:]]
        guesses = ", ".join(option for options in near for option in options)
        return f"; did you mean {guesses}?" if guesses else f"; those that are modelled: {', '.join(known)}"
