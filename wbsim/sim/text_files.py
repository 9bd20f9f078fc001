"""Reads text files that a user names: regular files only, up to a size limit."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Final

from wbsim.sim.units import KIB, MIB

MOST_BYTES: Final = 64 * MIB
"""The default size limit; neither wbsim nor a person writes a larger text."""
PIECE_BYTES: Final = 64 * KIB
"""The size of one read(2): from Linux 5.8 on, files of /proc/sys refuse reads of 4 MiB and more."""


def refuse_irregular(path: Path) -> None:
    """Refuse a device, which has no end, and a FIFO, whose end may not come.

    Raises:
        OSError: *path* is neither a regular file nor a directory, or does not exist.
    """
    mode = path.stat().st_mode
    if not S_ISREG(mode) and not S_ISDIR(mode):
        raise OSError(errno.EINVAL, "is not a regular file", str(path))


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def text_of(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """Return the text of the file *path*, with LF in place of CR LF.

    Configurations, job files of fio and stored runs are read this way, so no FIFO can hang a command.

    Raises:
        OSError: *path* cannot be read, is not a regular file, or holds more than *most_bytes*.
        UnicodeDecodeError: *path* is not UTF-8 text.
    """
    refuse_irregular(path)
    text = bytearray()
    with open(path, "rb", buffering=0, opener=_without_waiting) as file:
        while piece := os.read(file.fileno(), PIECE_BYTES):
            text += piece
            if len(text) > most_bytes:
                raise OSError(errno.EFBIG, f"holds more than {most_bytes >> 20} MiB", str(path))
    return text.decode().replace("\r\n", "\n")
