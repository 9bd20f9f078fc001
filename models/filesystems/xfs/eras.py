"""What each kernel's fs/xfs decides about where file pages lie, with where that was read."""

from __future__ import annotations

from typing import Final

from wbsim.sim.param import Given, specified

_PREALLOC: Final = {"fixed": "[V 2.6.34, 2.6.37]", "size": "[V 2.6.39, 3.1]", "preceding": "[V 3.11, 6.17]"}


def _xfs(
    prealloc: str,
    *,
    counts: str = "pages",
    whole_calls: bool = True,
    wraps: bool = False,
    unwritten: bool = True,
    zeroing: bool = False,
    large_folios: bool = False,
    cil: str = "spinlock",
) -> dict[str, Given]:
    return {
        "prealloc": specified(prealloc, f"mechanisms.md 6.3 {_PREALLOC[prealloc]}"),
        "whole_calls": specified(whole_calls, "fs/iomap; since 4.8 [R], 6.18 measured, D"),
        "zeroing_converts": specified(zeroing, "fs/xfs/xfs_iomap.c; 6.10 and later [R], 6.18 measured, D"),
        "nr_to_write_counts": specified(counts, "mechanisms.md 2.5 [V 2.6.34, 2.6.35.6, 2.6.37]"),
        "unwritten": specified(unwritten, "mechanisms.md 6.2: not in 5.4, in 5.10 [V 5.4, 5.10]"),
        "large_folios": specified(large_folios, "fs/xfs; 5.18 and later [R], 6.18 measured, H"),
        "cil": specified(cil, "mechanisms.md 5.2, 7.5: one xc_cil_lock to 5.19, per processor from 6.0 on"),
        "wraps": specified(wraps, "mechanisms.md 2.4; not since 4.20 [R]; seen in traces of 6.18"),
    }


_OLD: Final = _xfs("preceding", whole_calls=False, wraps=True, unwritten=False)
_BUFFERED_IOMAP: Final = _xfs("preceding", wraps=True, unwritten=False)
_UNWRITTEN: Final = _xfs("preceding")
_PER_CPU: Final = _xfs("preceding", large_folios=True, cil="per_cpu")
_ZEROING: Final = _xfs("preceding", zeroing=True, large_folios=True, cil="per_cpu")
XFS_ERAS: Final = {
    "2.6.34": _xfs("fixed", counts="calls_x4", whole_calls=False, wraps=True, unwritten=False),
    "2.6.34-n10": _xfs("fixed", whole_calls=False, wraps=True, unwritten=False),
    "2.6.39": _xfs("size", whole_calls=False, wraps=True, unwritten=False),
    "3.1": _xfs("size", whole_calls=False, wraps=True, unwritten=False),
    "3.11": _OLD, "3.11-p13": _OLD, "3.11-mmotm": _OLD, "3.11-v13": _OLD, "4.3": _OLD, "4.9": _BUFFERED_IOMAP,
    "5.4": _xfs("preceding", unwritten=False), "5.10": _UNWRITTEN, "5.17": _UNWRITTEN, "6.1": _PER_CPU,
    "6.14": _ZEROING, "6.17": _ZEROING, "6.18": _ZEROING,
}  # fmt: skip
