"""`wbsim completion`: a script that completes commands and options in a shell."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

HELP = 'print the completion for bash; use: eval "$(wbsim completion bash)"'


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    parser.add_argument("shell", choices=["bash"])


def execute(arguments: Namespace) -> int:
    """Print the script; return the exit status."""
    actions: Any = arguments.parser._actions
    (commands,) = (action.choices for action in actions if isinstance(action.choices, dict))
    cases = [f'        {name}) words="{" ".join(_words(parser))}" ;;' for name, parser in commands.items()]
    print(
        "\n".join(
            [
                "_wbsim() {",
                '    local words word="${COMP_WORDS[COMP_CWORD]}"',
                '    case "${COMP_WORDS[1]}" in',
                *cases,
                f'        *) words="{" ".join(commands)}" ;;',
                "    esac",
                f'    [ "$COMP_CWORD" = 1 ] && words="{" ".join(commands)}"',
                '    COMPREPLY=($(compgen -W "$words" -- "$word") $(compgen -f -- "$word"))',
                "}",
                "complete -o filenames -F _wbsim wbsim",
            ]
        )
    )
    return 0


def _words(parser: Any) -> list[str]:
    """Return the long options of a command and the choices of its positional arguments."""
    words = []
    for action in parser._actions:
        words += [option for option in action.option_strings if option.startswith("--")]
        words += [str(choice) for choice in action.choices or () if not action.option_strings]
    return words
