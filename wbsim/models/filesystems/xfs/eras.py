"""What each kernel's fs/xfs decides about where file pages lie, with where that was read."""

from __future__ import annotations

from typing import Final

from wbsim.models.release import release_of
from wbsim.sim.param import Given, specified

_PREALLOC: Final = {"fixed": "[V 2.6.34, 2.6.37]", "size": "[V 2.6.39, 3.1]", "preceding": "[V 3.11, 6.17]"}


def _xfs(
    prealloc: str,
    *,
    counts: str,
    whole_calls: bool,
    wraps: bool,
    unwritten: bool,
    zeroing: bool,
    large_folios: bool,
    cil: str,
) -> dict[str, Given]:
    return {
        "prealloc": specified(prealloc, f"mechanisms.md 6.3 {_PREALLOC[prealloc]}"),
        "whole_calls": specified(whole_calls, "fs/iomap; since 4.8 [R], 6.18 measured, D"),
        "zeroing_converts": specified(zeroing, "fs/xfs/xfs_iomap.c; 6.10 and later [R], 6.18 measured, D"),
        "nr_to_write_counts": specified(counts, "mechanisms.md 2.5 [V 2.6.34-2.6.37]; since 2.6.32 [R]"),
        "unwritten": specified(unwritten, "mechanisms.md 6.2: not in 5.4, in 5.10 [V 5.4, 5.10]"),
        "large_folios": specified(large_folios, "fs/xfs; 5.18 and later [R], 6.18 measured, H"),
        "cil": specified(cil, "mechanisms.md 5.2, 7.5: one xc_cil_lock to 5.19, per processor from 6.0 on"),
        "wraps": specified(wraps, "mechanisms.md 2.4; not since 4.20 [R]; seen in traces of 6.18"),
    }


def xfs_rules(kernel: str) -> dict[str, Given]:
    """Those of a kernel, by its release; between two that were read, the earlier one's."""
    release = release_of(kernel)
    rules = _xfs(
        "fixed" if release < (2, 6, 38) else "size" if release < (3, 11, 0) else "preceding",
        counts="calls_x4" if (2, 6, 32) <= release < (2, 6, 35) and kernel != "2.6.34-n10" else "pages",
        whole_calls=release >= (4, 8, 0),
        wraps=release < (4, 20, 0),
        unwritten=release >= (5, 10, 0),
        zeroing=release >= (6, 10, 0),
        large_folios=release >= (5, 18, 0),
        cil="per_cpu" if release >= (6, 0, 0) else "spinlock",
    )
    spans_calls = specified(release >= (4, 6, 0), "fs/xfs/xfs_aops.c: xfs_writepage_ctx; 4.6 and later [R]")
    return {**rules, "spans_calls": spans_calls}
