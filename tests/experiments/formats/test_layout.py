"""Extents as the tools print them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from wbsim.experiments.formats.layout import filefrag, xfs_bmap
from wbsim.models.page_cache.file_pages import FileExtent

EXTENTS = [FileExtent(0, 40, 16), FileExtent(2048, 24, 1), FileExtent(5120, 56, 256)]


def test_xfs_bmap_prints_as_the_tool_does() -> None:
    """The columns are those of xfsprogs 6.1, for a file in groups of 393216 blocks.

    The awk program of report N10 reads them.
    """
    text = xfs_bmap("d/a", EXTENTS, 393_216)
    assert text.splitlines() == [
        "d/a:",
        " EXT: FILE-OFFSET      BLOCK-RANGE      AG AG-OFFSET        TOTAL FLAGS",
        "   0: [0..127]:        320..447          0 (320..447)         128 000000",
        "   1: [128..16383]:    hole                                 16256",
        "   2: [16384..16391]:  192..199          0 (192..199)           8 000000",
        "   3: [16392..40959]:  hole                                 24568",
        "   4: [40960..43007]:  448..2495         0 (448..2495)       2048 000000",
    ]
    if shutil.which("awk"):
        awk = "/ [0-9]*:/ && !/hole/ { tot += $6; cnt++ } END { print tot / cnt }"
        result = subprocess.run(["awk", awk], input=text, capture_output=True, text=True, check=True)
        assert float(result.stdout) == pytest.approx((128 + 8 + 2048) / 3, rel=1e-4)


def test_filefrag_prints_as_the_tool_does() -> None:
    """The columns are those of e2fsprogs 1.47.

    An extent that adjoins the one before on disk is not counted.
    """
    blank = " " * 12
    assert filefrag("d/a", [*EXTENTS[:1], FileExtent(16, 56, 4), *EXTENTS[2:]], 5376 * 4096).splitlines() == [
        "File size of d/a is 22020096 (5376 blocks of 4096 bytes)",
        " ext:     logical_offset:        physical_offset: length:   expected: flags:",
        f"   0:        0..      15:         40..        55:     16:{blank}",
        f"   1:       16..      19:         56..        59:      4:{blank}",
        "   2:     5120..    5375:         56..       311:    256:         60: last,eof",
        "d/a: 2 extents found",
    ]
