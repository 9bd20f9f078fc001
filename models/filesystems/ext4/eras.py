"""What each kernel's fs/ext4 decides about where file pages lie, with where that was read."""

from __future__ import annotations

from typing import Final

from wbsim.sim.param import Given, specified

_BUMP_PAGES: Final = 32_768


def _ext4(
    *, bump: bool = False, page_bios: bool = False, unwritten: bool = True, by_order: bool = True,
    packs_closed: bool = True, goals: str = "one", large_folios: bool = False,
) -> dict[str, Given]:  # fmt: skip
    return {
        "bump_pages": specified(
            _BUMP_PAGES if bump else 0, "mechanisms.md 2.5: s_max_writeback_mb_bump of 128 MiB, to 3.10"
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


_OLD: Final = _ext4(unwritten=False, by_order=False, packs_closed=False)
_BUMPED: Final = _ext4(bump=True, unwritten=False, by_order=False, packs_closed=False)
_2_6_34: Final = _ext4(bump=True, page_bios=True, unwritten=False, by_order=False, packs_closed=False)
_GOALS: Final = _ext4(goals="per_processor", large_folios=True)
EXT4_ERAS: Final = {
    "2.6.34": _2_6_34, "2.6.34-n10": _2_6_34, "2.6.39": _BUMPED, "3.1": _BUMPED,
    "3.11": _OLD, "3.11-p13": _OLD, "3.11-mmotm": _OLD, "3.11-v13": _OLD,
    "4.3": _OLD, "4.9": _OLD, "5.4": _OLD,
    "5.10": _ext4(by_order=False, packs_closed=False), "5.17": _ext4(packs_closed=False), "6.1": _ext4(),
    "6.14": _ext4(), "6.17": _GOALS, "6.18": _GOALS,
}  # fmt: skip
