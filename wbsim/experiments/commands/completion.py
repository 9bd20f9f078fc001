"""`wbsim completion`: a script that completes commands, options and files in a shell, made by shtab."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

HELP = "print the completion for a shell; wbsim completion --help says how to use it"
_SHELLS = ("bash", "zsh", "fish", "tcsh")


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "shell",
        choices=_SHELLS,
        help='use: eval "$(wbsim completion bash)"; the same with zsh, after compinit; in fish:'
        " wbsim completion fish | source",
    )


def execute(arguments: Namespace) -> int:
    """Print the completion script for the shell; return 0.

    *arguments* are the parsed options of `add_options`.  `cli` adds its complete parser as ``parser``, whose
    commands and options the script knows.
    """
    import shtab

    from wbsim.experiments.commands.list import KINDS

    parser: ArgumentParser = arguments.parser
    for action in _actions(parser):
        if action.type is Path or action.metavar in ("DIR", "FILE"):
            action.complete = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE  # type: ignore[attr-defined]
        if action.dest == "what":  # `wbsim list` takes other words, too
            action.choices = KINDS
    print(shtab.complete(parser, arguments.shell))
    return 0


def _actions(parser: ArgumentParser) -> Iterator[Action]:
    """Yield the arguments of *parser* and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action.choices, dict):
            for command in action.choices.values():
                yield from _actions(command)
