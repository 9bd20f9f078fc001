"""Texts that a user names: regular files only, up to a size limit."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from wbsim.sim.text_files import PIECE_BYTES, refuse_irregular, text_of


def test_text_is_read_up_to_its_limit(tmp_path: Path) -> None:
    """A text is read up to a limit in bytes, and its line ends are converted."""
    (tmp_path / "a").write_bytes("ä\r\nb\n".encode())
    assert text_of(tmp_path / "a", 6) == "ä\nb\n"
    with pytest.raises(OSError, match="more than 0 MiB"):
        text_of(tmp_path / "a", 5)


def test_irregular_files_are_refused(tmp_path: Path) -> None:
    """A FIFO without a writer, an endless device, a directory and a broken link raise errors at once.

    A file of /proc, whose size is unknown, is read.
    """
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("nowhere")
    for path in (tmp_path / "fifo", Path("/dev/zero"), tmp_path, tmp_path / "link"):
        with pytest.raises(OSError, match=r"not a regular file|Is a directory|No such file"):
            text_of(path)
    refuse_irregular(tmp_path)
    assert int(text_of(Path("/proc/self/stat")).split()[0]) == os.getpid(), "of a size that it does not tell"


@pytest.mark.skipif(not Path("/proc/sys").is_dir(), reason="a system without /proc/sys")
@pytest.mark.parametrize(
    ("name", "expected"), [("vm/dirty_ratio", None), ("kernel/osrelease", os.uname().release)]
)
def test_text_of_reads_sysctl_files_of_the_running_kernel(name: str, expected: str | None) -> None:
    """Files of /proc/sys refuse reads of KMALLOC_MAX_SIZE and more from Linux 5.8 on."""
    text = text_of(Path("/proc/sys", name)).strip()
    assert text == expected if expected is not None else 0 <= int(text) <= 100


def test_text_of_reads_files_that_refuse_large_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No read(2) asks for 4 MiB or more, and short reads are continued to the end of the file."""
    text = "0123456789" * (PIECE_BYTES // 8)
    (tmp_path / "a").write_text(text)
    read = os.read

    def short_read(file: int, count: int) -> bytes:
        if count >= 4 << 20:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return read(file, min(count, 1_000))

    monkeypatch.setattr(os, "read", short_read)
    assert text_of(tmp_path / "a") == text
    assert text_of(tmp_path / "a", len(text)) == text
    with pytest.raises(OSError, match="holds more than 0 MiB"):
        text_of(tmp_path / "a", len(text) - 1)
