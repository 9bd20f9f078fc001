"""What the readers of workloads' own command lines share."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from typing import NoReturn


class CommandError(ValueError):
    """A command line that cannot be read, or that asks for what is not modelled."""


def words_of(line: str) -> list[str]:
    """The words of a command line; at least one, which may be empty.

    Raises:
        CommandError: a quotation is not closed.
    """
    try:
        return shlex.split(line) or [""]
    except ValueError as error:
        raise CommandError(f"{line!r}: {error}; close it") from None


class CommandParser(ArgumentParser):
    """argparse with errors instead of exits, and without abbreviations."""

    def __init__(self) -> None:
        super().__init__(add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """See `ArgumentParser.error`.

        Raises:
            CommandError: always.
        """
        raise CommandError(message)
