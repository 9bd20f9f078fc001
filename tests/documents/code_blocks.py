"""The code blocks of documents: each is made, a file, commands or Python, or has a reason why it is not run.

A code block is indented by four spaces or more.  A comment above it says what it is:

* ``<!-- made: NAME -->``: a maker gives its text (`tests.documents.places`);
* ``<!-- file: NAME -->``: the block is the content of that file;
* ``<!-- not run: REASON -->``: an excerpt, output, or a command that a test cannot run.

Without a comment, a block whose lines begin with ``wbsim`` has commands, and one that begins with ``import``
or ``from`` is Python.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final, NamedTuple

_MARK: Final = r"(?:^<!-- (?P<mark>made|file|not run): (?P<name>.+?) -->\n\n)?"
_BLOCK: Final = re.compile(_MARK + r"(?P<text>(?:^ {4}.*\n)(?:(?:^ {4}.*)?\n)*)", re.MULTILINE)


class Block(NamedTuple):
    """One code block: its kind, the name or reason in its comment, its text, and its first line's number.

    The kinds are "made", "file", "not run", "commands" and "python".
    """

    kind: str
    name: str
    text: str
    line: int

    def commands(self) -> Iterator[list[str]]:
        """Yield the words of each command behind ``wbsim``, without comments."""
        for command in _lines(self.text):
            yield shlex.split(command, comments=True)[1:]


def blocks_of(document: str) -> list[Block]:
    """Return the code blocks of the text *document*, in order.

    Raises:
        ValueError: a block has neither a comment nor commands or Python, or a block is fenced.
    """
    if fenced := re.search(r"^ *(```|~~~)", document, re.MULTILINE):
        raise ValueError(f"line {_line(document, fenced.start())}: indent the block by four spaces instead")
    return [_block(document, match) for match in _BLOCK.finditer(document)]


def _block(document: str, match: re.Match[str]) -> Block:
    line = _line(document, match.start("text"))
    text = "\n".join(line[4:] for line in match["text"].rstrip("\n").split("\n"))
    if match["mark"]:
        return Block(match["mark"], match["name"], text, line)
    if re.match(r"(import|from) ", text):
        return Block("python", "", text, line)
    if all(command.startswith("wbsim ") for command in _lines(text)):
        return Block("commands", "", text, line)
    raise ValueError(f"line {line}: say above the block what it is, such as <!-- not run: output -->")


def _lines(commands: str) -> list[str]:
    """Return the lines of *commands* that are not empty; a backslash joins a line to the next one."""
    return [line for line in re.sub(r"\\\n\s*", " ", commands).splitlines() if line]


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
