"""Error messages about lines that are not part of a capture: cut lines, remarks, other formats."""

from __future__ import annotations

import re
from typing import Final

_SHOWN: Final = 60
"""The number of characters of a line that a message repeats."""


def quoted(line: str) -> str:
    """Return the first 60 characters of *line* in quotes, with escapes for unprintable characters.

    Blanks at both ends are left out, and a longer line ends with " ...".

    >>> quoted(" 8,0 W ")
    "'8,0 W'"
    """
    text = line.strip()
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r} ..."


def refusal(text_format: str, line: str) -> str:
    """Return the error message for *line*, which is not part of a text in *text_format*, with a remedy.

    *text_format* is a noun, such as "blkparse's default format"; both parsers call this.
    """
    return (
        f"is not a line of {text_format}: {quoted(line)}; a capture must be complete:"
        " give the tool's output without cuts or remarks"
    )


def bad_fields(event: str, part: str, fields: str, remarked: re.Pattern[str], expected: str) -> str:
    """Return the error message for the *fields* of an *event*, which lack *part* or end with a remark.

    *event* names the event, and *part* what is absent, such as "count".  The first group of *remarked* is the
    text behind complete fields.  *expected*: an example of good fields.
    """
    if (remark := remarked.fullmatch(fields)) is not None and remark[1].strip():
        return f"{event} is followed by {quoted(remark[1])}; remove this text from the line"
    return f"{event} has no {part}; expected: {expected}"
