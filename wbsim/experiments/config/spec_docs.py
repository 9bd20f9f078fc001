"""The sentences about a spec and its fields, read from the docstring of the spec.

A field has one bullet, ``* ``name``: sentences``, in its class or in a base class.  A bullet ends at the next
bullet or at an empty line.  All other paragraphs describe the spec.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from typing import Final

from pydantic import BaseModel

_END: Final = re.compile(r"\n(?=\* )|\n\s*\n")
_BULLET: Final = re.compile(r"\* `(\w+)`: (.+)")
_WORD: Final = re.compile(r"[a-z]+['-]?[a-z]*[ ,:]")


def about(spec: type[BaseModel]) -> list[str]:
    """Return the paragraphs about *spec* itself, as Markdown, without the bullets of its fields."""
    return [text for text in _paragraphs(spec) if not text.startswith("* ")]


def sentences_of(spec: type[BaseModel]) -> dict[str, str]:
    """Return the sentences about each field of *spec*, as Markdown; a field without a bullet is missing.

    Bullets of base classes count, too; that of *spec* itself takes precedence.
    """
    bullets = [
        match.groups()
        for base in reversed(spec.__mro__)
        for match in map(_BULLET.fullmatch, _paragraphs(base))
        if match is not None
    ]
    return {name: _as_sentence(text) for name, text in bullets if name in spec.model_fields}


def _as_sentence(text: str) -> str:
    """Return *text* with a capital, unless it begins with an identifier such as s_sync_lock."""
    return text[0].upper() + text[1:] if _WORD.match(text) else text


def _paragraphs(owner: type) -> Iterator[str]:
    """Yield each paragraph and each bullet of the docstring of the class *owner*, on one line."""
    for text in _END.split(cleandoc(vars(owner).get("__doc__") or "")):
        yield " ".join(text.replace("``", "`").split())
