"""The extents of files, as ``xfs_bmap -vp`` and ``filefrag -v`` print them.

Extents are `models.page_cache.file_pages.FileExtent`: pages and blocks of 4 KiB.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from wbsim.models.page_cache.file_pages import FileExtent
from wbsim.sim.units import PAGE_SECTORS

_LEAST_WIDTHS: Final = (16, 16, 2, 16, 5)  # io/bmap.c of xfsprogs: MINRANGE_WIDTH, MINAG_WIDTH, MINTOT_WIDTH


def xfs_bmap(name: str, extents: Sequence[FileExtent], group_pages: int) -> str:
    """Return the output of ``xfs_bmap -vp`` for the file *name*, in units of 512 B and with holes.

    *extents* ascend by page.  *group_pages*: the size of an allocation group, in pages of 4 KiB.
    """
    rows = [("FILE-OFFSET", "BLOCK-RANGE", "AG", "AG-OFFSET", "TOTAL", " FLAGS")]
    end = 0
    for extent in extents:
        if extent.page > end:
            hole = extent.page - end
            rows.append((f"[{_range(end, hole)}]:", "hole", "", "", _sectors(hole), ""))
        group, offset = divmod(extent.block, group_pages)
        pages, file_range = extent.pages, f"[{_range(extent.page, extent.pages)}]:"
        disk_range, group_range = _range(extent.block, pages), f"({_range(offset, pages)})"
        rows.append((file_range, disk_range, f"{group}", group_range, _sectors(pages), " 000000"))
        end = extent.page + extent.pages
    file_w, disk_w, ag_w, group_w, total_w = (
        max(least, *(len(row[i]) for row in rows)) for i, least in enumerate(_LEAST_WIDTHS)
    )
    lines = [f"{name}:"]
    for number, (file_range, disk_range, ag, group_range, total, flags) in enumerate(rows, -1):
        label = "EXT" if number < 0 else number
        places = f"{file_range:<{file_w}} {disk_range:<{disk_w}} {ag:>{ag_w}} {group_range:<{group_w}}"
        lines.append(f"{label:>4}: {places} {total:>{total_w}}{flags}")
    return "\n".join(lines)


def filefrag(name: str, extents: Sequence[FileExtent], size: int) -> str:
    """Return the output of ``filefrag -v`` for the file *name* of *size* bytes, in blocks of 4096 B.

    *extents* ascend by page.  The last line counts extents that are next to each other on disk as one.
    """
    pages = -(-size // 4096)
    lines = [
        f"File size of {name} is {size} ({pages} blocks of 4096 bytes)",
        " ext:     logical_offset:        physical_offset: length:   expected: flags:",
    ]
    expected = [None, *(earlier.block + earlier.pages for earlier in extents)]
    for number, (extent, start) in enumerate(zip(extents, expected, strict=False)):
        logical = f"{extent.page:8d}..{extent.page + extent.pages - 1:8d}"
        physical = f"{extent.block:10d}..{extent.block + extent.pages - 1:10d}"
        jump = f"{start:10d}:" if start is not None and start != extent.block else " " * 11
        flags = " last,eof" if number == len(extents) - 1 else ""
        lines.append(f"{number:4d}: {logical}: {physical}: {extent.pages:6d}: {jump}{flags}")
    broken = sum(earlier.block + earlier.pages != later.block for earlier, later in pairwise(extents))
    count = broken + bool(extents)
    return "\n".join([*lines, f"{name}: {count} extent{'s' * (count != 1)} found"])


def _range(first: int, pages: int) -> str:
    return f"{first * PAGE_SECTORS}..{(first + pages) * PAGE_SECTORS - 1}"


def _sectors(pages: int) -> str:
    return str(pages * PAGE_SECTORS)
