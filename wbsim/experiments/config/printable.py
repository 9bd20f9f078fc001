"""Makes the text of a user printable in one line of an error.

The module imports nothing of `sim`, because the command line needs it before an engine is chosen.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """Return *text* in one line, with escapes for all letters that could control a terminal, also tabs.

    >>> printable("one" + chr(10) + "two") == "one" + chr(92) + "ntwo"
    True
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
