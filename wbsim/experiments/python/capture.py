"""A capture of a real kernel in Python: judge it by any plug rules, and compare other kernels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from wbsim.experiments.captures.conditions import Options, conditions_of
from wbsim.experiments.captures.merge_decisions import steps_of
from wbsim.experiments.captures.reader import open_capture
from wbsim.experiments.captures.replay import replay
from wbsim.experiments.captures.report import figure
from wbsim.experiments.captures.verdict import Verdict
from wbsim.experiments.captures.what_if import what_if
from wbsim.experiments.python.arguments import checked
from wbsim.models.block.spec import PlugRules
from wbsim.models.catalogue.kernels import PLUG_RULES
from wbsim.sim.units import KIB, SECTOR_BYTES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Capture:
    """A capture at *path*, which `wbsim capture` recorded or blkparse printed.

    *device* ("7,0") chooses one of several devices.

    Raises:
        BadInput: *path* is not a capture, its header lacks a limit, or *device* is missing or unknown.
    """

    @checked
    def __init__(self, path: str | Path, device: str | None = None) -> None:
        self._capture = open_capture(Path(path))
        self._of = conditions_of(self._capture, Options(device, **dict.fromkeys(_OPTIONS)))

    @property
    def rules(self) -> PlugRules:
        """The plug rules of the captured kernel; change one with ``rules.model_copy(update={...})``."""
        return PLUG_RULES[self._of.era]

    def judge(self, rules: PlugRules | None = None) -> Verdict:
        """Compare every decision of the kernel with that of *rules*; None: the rules of the kernel."""
        of = self._of
        steps = steps_of(self._capture.events(), of.scheduler)
        return replay(steps, rules or self.rules, of.limits, of.scheduler, of.device)

    def what_if(self, rules: Mapping[str, PlugRules] = PLUG_RULES) -> pd.DataFrame:
        """Return a row for each of *rules*, by name.

        ``requests``: the number of requests that would have left the plugs.  ``mean_size_kib``: their mean
        size.
        """
        import pandas as pd

        of = self._of
        issued = what_if(steps_of(self._capture.events(), of.scheduler), rules, of.limits, of.device)
        rows = []
        for name, found in issued.items():
            sectors = sum(length * count for length, count in found.lengths.items())
            mean_kib = sectors * SECTOR_BYTES / KIB / max(found.requests, 1)
            rows.append({"rules": name, "requests": found.requests, "mean_size_kib": mean_kib})
        return pd.DataFrame(rows)

    def draw(self, rules: Mapping[str, PlugRules] = PLUG_RULES) -> Figure:
        """Return a picture of `what_if`: the number of requests, and their sizes."""
        of = self._of
        issued = what_if(steps_of(self._capture.events(), of.scheduler), rules, of.limits, of.device)
        return figure(self._capture.path.name, of, issued)


_OPTIONS = ("kernel", "scheduler", "nomerges", "max_sectors_kb", "max_segments")
