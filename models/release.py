"""A kernel's release as a number: 6.12 is after 6.8."""

from __future__ import annotations

import re
from typing import Final

Release = tuple[int, int, int]
_RELEASE: Final = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?![\d.])")
NEWEST_PATCH: Final = 999


def release_of(name: str) -> Release:
    """Of a kernel's *name*, such as "3.11", "2.6.34-n10" or "6.8.0-45-generic"; of a series without a patch
    level, the newest is meant.

    Raises:
        ValueError: it begins with no release.
    """
    match = _RELEASE.match(name)
    if match is None:
        raise ValueError(f"{name!r} is no kernel version")
    major, minor, patch = match.groups()
    return int(major), int(minor), NEWEST_PATCH if patch is None else int(patch)
