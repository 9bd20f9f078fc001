"""What each kernel's fs/ext4 decides about where file pages lie, with where that was read."""

from __future__ import annotations

from typing import Final

from wbsim.models.release import release_of
from wbsim.sim.param import Given, specified

_BUMP_PAGES: Final = 32_768
_STREAM_PAGES: Final = 16  # s_mb_stream_request


def ext4_rules(kernel: str) -> dict[str, Given]:
    """Those of a kernel, by its release; between two that were read, the earlier one's."""
    release = release_of(kernel)
    bump = 0 if release >= (3, 11, 0) else _BUMP_PAGES if release >= (2, 6, 32) else _STREAM_PAGES
    page_bios = release < (2, 6, 37)
    by_order, packs_closed = release >= (5, 13, 0), release >= (6, 0, 0)
    goals = "per_processor" if release >= (6, 17, 0) else "one"
    large_folios, unwritten = release >= (6, 16, 0), release >= (5, 6, 0)
    return {
        "bump_pages": specified(
            bump, "mechanisms.md 2.5: s_max_writeback_mb_bump of 128 MiB, 2.6.32 to 3.10; before, 16 pages"
        ),
        "page_bios": specified(page_bios, "mechanisms.md 1.5 [V 2.6.34, 3.10]; to 2.6.36"),
        "by_order": specified(by_order, "fs/ext4/mballoc.c: mb_optimize_scan, since 5.13 [R]"),
        "packs_closed": specified(
            packs_closed, "fs/ext4/mballoc.c: since 6.0 [R]; before, mechanisms.md 6.6 [V 3.10]"
        ),
        "goals": specified(
            goals, "fs/ext4/mballoc.c: one for each processor since 6.17 [R]; 6.18 measured, E"
        ),
        "large_folios": specified(large_folios, "fs/ext4; 6.16 and later [R], 6.18 measured, H"),
        "unwritten": specified(unwritten, "dioread_nolock is the default since 5.6 [R]"),
    }
