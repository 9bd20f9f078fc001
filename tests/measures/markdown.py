"""The paragraphs of a document or a docstring: text without code, tables, headings, pictures and comments.

An item of a list is a paragraph.  Left out: setext headings, link definitions, HTML other than comments.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_PICTURE: Final = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_FENCE: Final = re.compile(r"\s*(```+|~~~+)")
_ITEM: Final = re.compile(r"\s*(?:[*+-]|\d+[.)])\s+(?=\S)")
_APART: Final = re.compile(r"\s*(?:#{1,6}\s|\|)|.*\S {3,}\S")
"""A heading, a row of a table, or a line with columns: three spaces between words."""
_NOTHING: Final = re.compile(r"\s*(?:>>>\s.*|[-*]{3,}\s*)?$")
_CODE_INDENT: Final = 4


class Line(NamedTuple):
    """A line of a document; *apart*: a heading or a row of a table, *none*: no prose."""

    kind: Literal["begins", "continues", "apart", "none"]
    text: str = ""


def plain(text: str) -> str:
    """Return *text* without comments and pictures, and with the words of links alone; the lines stay."""
    text = _COMMENT.sub(_newlines, text)
    text = _PICTURE.sub(_newlines, text)
    return _LINK.sub(lambda link: link[1] + _newlines(link).removeprefix("\n" * link[1].count("\n")), text)


def _newlines(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def lines_of(text: str) -> list[Line]:
    """Return every line of *text*, so that a place in the result is a line of the document."""
    found: list[Line] = []
    fence, apart, content, in_code = "", True, 0, False
    for line in plain(text).expandtabs(4).splitlines():
        mark = _FENCE.match(line)
        if fence or mark:
            closes = bool(fence and mark and mark[1].startswith(fence))
            fence = "" if closes else fence or (mark[1] if mark else "")
            read = Line("none")
        elif _NOTHING.match(line):
            read = Line("none")
        else:
            indent = len(line) - len(line.lstrip())
            if apart and not indent:
                content = 0  # the list has ended
            in_code = indent >= content + _CODE_INDENT and (apart or in_code)
            item = _ITEM.match(line)
            if in_code:
                read = Line("none")
            elif _APART.match(line):
                read = Line("apart", line.strip())
            elif item:
                content = len(item[0])
                read = Line("begins", line[content:])
            else:
                read = Line("begins" if apart else "continues", line.strip().removeprefix("> "))
        apart = read.kind in ("none", "apart")
        found.append(read)
    return found


def prose_of(text: str) -> str:
    """Return the paragraphs, headings and tables of *text* on their lines; every other line is empty."""
    return "\n".join(line.text for line in lines_of(text))


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of *text*, each as one string with its line breaks."""
    found: list[str] = []
    for line in lines_of(text):
        if line.kind == "begins":
            found.append(line.text)
        elif line.kind == "continues":
            found[-1] += f"\n{line.text}"
    return found
