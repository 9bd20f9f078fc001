"""Runs in which nothing was written back; `run`, `advise`, `sensitivity` and `explain` share this rule.

The rates of such a run are those of memory, so it says nothing about a disk or a flusher.
"""

from __future__ import annotations

from typing import Final

from wbsim.experiments.results.figures import FIGURES
from wbsim.experiments.results.outcome import Outcome
from wbsim.sim.units import MIB

_LIMIT: Final = "the background limit (kernel.dirty.dirty_background_ratio or dirty_background_bytes)"


def nothing_written_back(outcome: Outcome, *, until_end: bool = False) -> bool:
    """Return whether the programs wrote data, and no page of it was on disk when the last of them ended.

    *until_end*: the sync(2) after the programs counts, too.  Programs that write no data have nothing to
    write back, so the answer for them is False.
    """
    synced = until_end and outcome.on_disk_time is not None
    return outcome.file_bytes > 0 and not FIGURES["written_back"].whole(outcome) and not synced


def why_nothing(outcome: Outcome) -> str:
    """Return why nothing was written back in the run of *outcome*, and what to change.

    The last sample of the levels has the background limit; a run without a sample has none.
    """
    wrote, limits = outcome.file_bytes, outcome.levels["background"]
    limit = limits[-1] * MIB if limits else None
    text = f"nothing was written back before the programs ended: they wrote {_mb(wrote)}"
    if limit is None:
        return f"{text} within 10 ms; write more data, or lower {_LIMIT}"
    if wrote > limit:
        return f"{text}, above the background limit of {_mb(limit)}, but ended too soon; write more data"
    return f"{text}, and the background limit is {_mb(limit)}; write more than that, or lower {_LIMIT}"


def _mb(size: float) -> str:
    return f"{size / 1e6:.3g} MB" if size < 1e9 else f"{size / 1e9:.3g} GB"
