"""Sizes as the GNU tools read them."""

from __future__ import annotations

import re
from typing import Final

from wbsim.models.workloads.command_line import MOST_DIGITS, CommandError

_SIZE: Final = re.compile(rf"([0-9]{{1,{MOST_DIGITS}}})(?:([KMGT])(iB|B)?|k|kB)?", re.ASCII)
_POWERS: Final = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4}


def bytes_of_gnu_size(text: str) -> int:
    """Return a size in bytes: a number alone, or with K, M, G or T (1024), or with KB, MB ... (1000).

    >>> bytes_of_gnu_size("4K"), bytes_of_gnu_size("1MB"), bytes_of_gnu_size("2GiB")
    (4096, 1000000, 2147483648)

    Raises:
        CommandError: *text* is no such size.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise CommandError(f"{text!r} is not a size; write one such as 4096, 64K, 1M or 1GB")
    suffix = text[len(match[1]) :]
    power = _POWERS[suffix[0]] if suffix else 0
    base = 1000 if suffix.endswith("B") and not suffix.endswith("iB") else 1024
    return int(match[1]) * int(base**power)
