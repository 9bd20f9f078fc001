"""A run of free blocks, whatever the filesystem."""

from __future__ import annotations

from typing import NamedTuple


class Free(NamedTuple):
    """A run of free blocks."""

    first: int
    size: int
