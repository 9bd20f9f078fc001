"""Messages about lines of a capture that no tool printed: cuts, prose, other formats."""

from __future__ import annotations

from typing import Final

_SHOWN: Final = 60
"""Characters of a line that a message repeats."""


def quoted(line: str) -> str:
    """Return the first characters of *line* in quotes, with escapes for what cannot be printed."""
    text = line.strip()
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r} and more"


def refusal(text_format: str, line: str) -> str:
    """Return the message for *line*, which is foreign to a text in *text_format*."""
    return (
        f"is no line of {text_format}: {quoted(line)}; a capture must be complete:"
        " give the tool's output without cuts or remarks"
    )
