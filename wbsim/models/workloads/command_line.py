"""The functions that the readers of command lines share."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final, NamedTuple, NoReturn

MOST_DIGITS: Final = 18


class Options(NamedTuple):
    """The options of a program: those that are ``modelled``, and those without effect, which are ``dropped``.

    ``refusals``: why the others are refused, by the option; "": it is not modelled, and a command without it
    is another experiment.  ``aliases``: the options that have another name, by this name.
    """

    modelled: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    refusals: Mapping[str, str] = MappingProxyType({})
    aliases: Mapping[str, str] = MappingProxyType({})


def options_of(
    modelled: Sequence[str], real: Collection[str], dropped: Sequence[str] = (), common: str = ""
) -> Options:
    """Return the `Options` of a program: *modelled* and *dropped*, with dashes, and the refusals.

    *real* are all options of the program, without dashes; those that are neither are refused.  *common* names
    options that every program has, such as help, with blanks between them: the result leaves them out.

    >>> options_of(("-s",), ("s", "c", "size"), common="size").refusals
    {'-c': ''}
    """
    names = {option.lstrip("-") for option in (*modelled, *dropped)}
    rest = sorted(set(real) - names - set(common.split()))
    dashed = {f"{'-' if len(option) == 1 else '--'}{option}": "" for option in rest}
    return Options(tuple(modelled), tuple(dropped), dashed)


class CommandError(ValueError):
    """A command line that cannot be read, or that asks for something that is not modelled.

    ``complaints``: all that is wrong; the message is the first of them.
    """

    def __init__(self, *complaints: str) -> None:
        super().__init__(complaints[0])
        self.complaints = complaints


def words_of(line: str) -> list[str]:
    """Return the words of a command line: at least one, which may be empty.

    >>> words_of("dd of='a b' bs=4k")
    ['dd', 'of=a b', 'bs=4k']

    Raises:
        CommandError: a quotation is not closed, *line* has a null character or a line break, or a shell would
            make other words of *line*.
    """
    if any(letter in line for letter in "\0\n"):
        raise CommandError(f"{line!r} has a line break or a null character; write one line of text")
    try:
        words = shlex.split(line) or [""]
    except ValueError as error:
        raise CommandError(f"{line!r}: {error}; close the quotation") from None
    _refuse_shell_syntax(line, words)
    return words


_SHELL: Final = {
    re.compile(r"\$(?:\w+|[({@#?*!$-])|`|(?:^|(?<=[=:]))~"): "write its value",
    re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}|[*?]|\[[^\]]+\]"): "",
    re.compile(r"^#|[;|&<>()]"): (
        "a command is one program: write what follows as a program of its own, with after = NAME of this one"
    ),
}
"""The syntax of a shell in a word without its quotations, and the remedy; "": see `_EACH`."""
_EACH: Final = {
    "dd": "give command a list with a line for each of=",
    "fio": "write a --name with its own --directory for each",
    "fs_mark": "write a -d for each",
    "fsmark": "write a -d for each",
}
"""The remedy for a word that stands for several paths, by program."""


def shell_syntax(word: str, program: str) -> tuple[str, str]:
    """Return what a shell would change in the unquoted *word* of *program*, and the remedy.

    Both are "" if a shell would change nothing.

    >>> shell_syntax("/data/{1..4}", "rm")
    ('{1..4}', 'write each path')
    """
    for syntax, remedy in _SHELL.items():
        if (match := syntax.search(word)) is not None:
            return match[0], remedy or _EACH.get(program.rpartition("/")[2], "write each path")
    return "", ""


def _refuse_shell_syntax(line: str, words: Sequence[str]) -> None:
    """Check that a shell would not change the *words* of *line*, because no shell reads a command here.

    Raises:
        CommandError: a word has an unquoted pattern, brace, variable, tilde or operator.
    """
    for number, bare in enumerate(_without_quotations(line).split()):
        syntax, remedy = shell_syntax(bare, words[0])
        if syntax:
            word = words[number] if number < len(words) else bare
            raise CommandError(
                f"{word!r} has {syntax!r} for a shell, and no shell reads this line; {remedy}, or quote it"
            )


_QUOTED: Final = "%"
"""No shell gives this character a meaning."""


def _without_quotations(line: str) -> str:
    r"""Return *line* with a % for each quoted character, so that only what a shell reads is left.

    >>> _without_quotations("dd of='/a *'/$x bs=\\*")
    'dd of=%%%%%%/$x bs=%%'
    """
    bare, quotation, letters = [], "", iter(line)
    for letter in letters:
        if letter == "\\" and quotation != "'":
            next(letters, "")
            bare += [_QUOTED, _QUOTED]
        elif letter == quotation or (not quotation and letter in "'\""):
            quotation = "" if quotation else letter
            bare.append(_QUOTED)
        else:
            expansion = letter in "{(" and bare[-1:] == ["$"]
            active = not quotation or (
                quotation == '"' and (letter.isalnum() or letter in "$`_" or expansion)
            )
            bare.append(letter if active else _QUOTED)
    return "".join(bare)


def is_whole(text: str) -> bool:
    """Return whether *text* has 1 to `MOST_DIGITS` decimal digits and nothing else: no sign, no blank.

    >>> is_whole("12"), is_whole("-1"), is_whole("1.5")
    (True, False, False)
    """
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS


def one_line(lines: Sequence[str], program: str) -> str:
    """Return the only one of *lines*, which is not empty; *program* is the name for the error.

    Raises:
        CommandError: *lines* has several lines.
    """
    if len(lines) > 1:
        raise CommandError(
            f"{len(lines)} command lines of {program}: only dd takes several lines; give each line a"
            " separate program"
        )
    return lines[0]


_UNKNOWN: Final = "unrecognized arguments: "


class CommandParser(ArgumentParser):
    """argparse with errors instead of exits, and without abbreviations.

    *real* are the options of the real program, without dashes, of which only some are modelled.
    """

    def __init__(self, real: Collection[str] = ()) -> None:
        super().__init__(add_help=False, allow_abbrev=False)
        self._real = real

    def error(self, message: str) -> NoReturn:
        """See `ArgumentParser.error`.

        Raises:
            CommandError: always.
        """
        if message.startswith(_UNKNOWN):
            message = self._explain(message, message.removeprefix(_UNKNOWN).split())
        raise CommandError(message)

    def _explain(self, message: str, words: Sequence[str]) -> str:
        """Return the *message* on unknown *words*, of which a real option is never a misspelling."""
        names = [option for action in self._actions for option in action.option_strings]
        arguments = [word.partition("=")[0] for word in words]
        options = f"modelled are: {', '.join(names)}"
        for option in arguments:
            if option.startswith("-") and (name := option.lstrip("-")) in self._real:
                if f"--{name}" in names and len(name) > 1:
                    return f"{option} is not modelled with one dash; write --{name}"
                return f"{option} is not modelled; {options}"
        matches = [get_close_matches(option, names, n=1) for option in arguments]
        guesses = ", ".join(option for match in matches for option in match)
        return f"{message}; did you mean {guesses}?" if guesses else f"{message}; {options}"
