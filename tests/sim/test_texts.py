"""Texts that somebody names come from regular files, and are of a size that can be meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wbsim.sim.texts import refuse_irregular, text_of


def test_a_text_is_read_whole(tmp_path: Path) -> None:
    """Up to its bound, and with the ends of lines as Python's own."""
    (tmp_path / "a").write_bytes("ä\r\nb\n".encode())
    assert text_of(tmp_path / "a", 6) == "ä\nb\n"
    with pytest.raises(OSError, match="more than 0 MiB"):
        text_of(tmp_path / "a", 5)


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    """A FIFO that nobody writes, a device without end, a directory, a link to nowhere."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("nowhere")
    for path in (tmp_path / "fifo", Path("/dev/zero"), tmp_path, tmp_path / "link"):
        with pytest.raises(OSError, match=r"no regular file|Is a directory|No such file"):
            text_of(path)
    refuse_irregular(tmp_path)
    assert int(text_of(Path("/proc/self/stat")).split()[0]) == os.getpid(), "of a size that it does not tell"
