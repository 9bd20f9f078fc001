"""What the readers of workloads' own command lines share."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import NoReturn


class CommandError(ValueError):
    """A command line that cannot be read, or that asks for what is not modelled."""


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
