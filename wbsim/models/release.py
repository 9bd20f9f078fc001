"""A kernel's release as a number: 6.12 is after 6.8."""

from __future__ import annotations

import re
from typing import Final

Release = tuple[int, int, int]
_NUMBER: Final = "(0|[1-9][0-9]{0,3})"
_RELEASE: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}(?:\.{_NUMBER})?(?:[-+~_][-+~.\w]*)?")
_LAST_OF: Final = {2: 6, 3: 19, 4: 20, 5: 19}
_LAST_OF_2_6: Final = 39
NEWEST_PATCH: Final = 999


def bound_of(text: str) -> Release:
    """Return (major, minor, patch) of the release that *text* names.

    The patch is 0 for a series, and 999 for y, the newest of its series.

    >>> bound_of("5.16"), bound_of("5.10.89"), bound_of("6.6.y")
    ((5, 16, 0), (5, 10, 89), (6, 6, 999))

    Raises:
        ValueError: *text* has anything else behind its numbers, or is no release.
    """
    series = text.removesuffix(".y")
    if not all(part.isdecimal() for part in series.split(".")):
        raise ValueError(f"{text!r} is not a release; write 5.16, 5.10.89 or 6.6.y")
    major, minor, patch = release_of(series)
    return major, minor, 0 if patch == NEWEST_PATCH and series == text else patch


def release_of(name: str) -> Release:
    """Return the release of a kernel's *name*, such as "3.11", "2.6.34-n10" or "6.8.0-45-generic".

    A name without a patch level stands for the newest release of the series.

    >>> release_of("3.11"), release_of("6.8.0-45-generic")
    ((3, 11, 999), (6, 8, 0))

    Raises:
        ValueError: *name* is not a release, perhaps with a suffix behind -, +, ~ or _.  Or Linux had no
            release of that number.
    """
    match = _RELEASE.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is not a kernel version")
    major, minor, patch = (None if part is None else int(part) for part in match.groups())
    assert major is not None
    assert minor is not None
    if minor > _LAST_OF.get(major, minor) or (major == 2 and patch is not None and patch > _LAST_OF_2_6):
        raise ValueError(f"Linux {name} was never released")
    return major, minor, NEWEST_PATCH if patch is None else patch
