"""What each kernel's fs/ext4 decides about where file pages lie, with where that was read."""

from __future__ import annotations

from typing import Final

from sim.param import Given, specified


def _ext4(bump_pages: int, page_bios: bool, modern: bool, source: str) -> dict[str, Given]:
    return {
        "bump_pages": specified(
            bump_pages, f"mechanisms.md 2.5 {source}: s_max_writeback_mb_bump of 128 MiB, to 3.10"
        ),
        "page_bios": specified(page_bios, f"mechanisms.md 1.5 {source}"),
        "by_order": specified(modern, f"fs/ext4/mballoc.c {source}: mb_optimize_scan, since 5.13 [R]"),
        "packs_closed": specified(
            modern, f"fs/ext4/mballoc.c {source}: since 6.0 [R]; before, mechanisms.md 6.6"
        ),
        "goals": specified(
            "per_processor" if modern else "one",
            f"fs/ext4/mballoc.c {source}: since 6.17 [R]; 6.18 measured, E",
        ),
        "unwritten": specified(modern, f"fs/ext4 {source}: dioread_nolock is the default since 5.6 [R]"),
    }


EXT4_ERAS: Final = {
    "2.6.34": _ext4(32_768, True, False, "[V 2.6.34]"),
    "3.11": _ext4(0, False, False, "[V 3.11]"),
    "4.3": _ext4(0, False, False, "[V 3.11]"),
    "6.17": _ext4(0, False, True, "[V 6.17]"),
}
EXT4_ERAS.update(
    {"2.6.34-n10": EXT4_ERAS["2.6.34"], "3.11-p13": EXT4_ERAS["3.11"], "6.18": EXT4_ERAS["6.17"]}
)
