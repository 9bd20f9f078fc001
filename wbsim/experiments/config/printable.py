"""Text of a user, as it can stand in a line of an error.

It stands alone because the command line reads it before an engine is chosen, when nothing of `sim` may be
imported.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """Return *text* with its control characters escaped: one line that does nothing to a terminal."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
