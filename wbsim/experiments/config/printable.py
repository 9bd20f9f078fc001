"""What a user wrote, as it can stand in a line of an error."""

from __future__ import annotations


def printable(text: str) -> str:
    """*text* with its control characters escaped, so that it is one line and does nothing to a terminal."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
