"""What each kernel's fs/xfs decides about where file pages lie, with where that was read."""

from __future__ import annotations

from typing import Final

from sim.param import Given, specified


def _xfs(prealloc: str, modern: bool, quota: str, source: str) -> dict[str, Given]:
    return {
        "prealloc": specified(prealloc, f"mechanisms.md 6.3 {source}"),
        "whole_calls": specified(modern, f"fs/iomap {source}; since 4.8 [R], 6.18 measured, D"),
        "zeroing_converts": specified(
            modern, f"fs/xfs/xfs_iomap.c {source}; 6.10 and later [R], 6.18 measured, D"
        ),
        "quota": specified(quota, f"mechanisms.md 2.5 {source}"),
        "unwritten": specified(modern, f"mechanisms.md 6.2 {source}: not in 5.4, in 5.10"),
        "wraps": specified(
            not modern, f"mechanisms.md 2.4 {source}; not since 4.20 [R]; seen in traces of 6.18"
        ),
    }


XFS_ERAS: Final = {
    "2.6.34": _xfs("fixed", False, "calls_x4", "[V 2.6.34]"),
    "2.6.34-n10": _xfs("fixed", False, "pages", "[V 2.6.35.6, 2.6.37]: the repair of report N10"),
    "3.11": _xfs("preceding", False, "pages", "[V 3.11]"),
    "4.3": _xfs("preceding", False, "pages", "[V 3.11]"),
    "6.17": _xfs("preceding", True, "pages", "[V 6.17]"),
}
XFS_ERAS.update({"3.11-p13": XFS_ERAS["3.11"], "6.18": XFS_ERAS["6.17"]})
