"""The results of an experiment in Python: tidy frames with units in their columns, and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from wbsim.experiments.config.problems import bad
from wbsim.experiments.formats.report import outcome_table
from wbsim.experiments.pictures.facets import chosen, narrowed, settings_of, usual_lines
from wbsim.experiments.pictures.maps import heat_map
from wbsim.experiments.pictures.plots import against
from wbsim.experiments.pictures.thread_times import thread_times_picture
from wbsim.experiments.pictures.time import over_time
from wbsim.experiments.python.arguments import known
from wbsim.experiments.running.outcome import Outcome
from wbsim.experiments.running.results import Results
from wbsim.experiments.statistics.dataset import IDENTITY, tidy
from wbsim.experiments.statistics.figures import COLUMNS, FIGURES
from wbsim.experiments.statistics.intervals import interval_of, steady_of
from wbsim.experiments.why.explain import explanation, result_of
from wbsim.sim.units import MIB, MS, PAGE_BYTES, SECTOR_BYTES, S

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Findings:
    """The outcomes of runs, as tidy frames (a row for each observation) and as matplotlib figures."""

    title: str
    axes: tuple[str, ...]
    outcomes: tuple[Outcome, ...]

    def __repr__(self) -> str:
        return f"{self.title}\n{outcome_table(self.outcomes, self.axes)}"

    def frame(self) -> pd.DataFrame:
        """Return a row for each run: ``variant``, the swept keys, ``replication``, ``seed``, and all figures.

        The column of a figure has the unit in its name (``write_iops_per_s``, ``wall_time_s`` ...).
        """
        return tidy(self.outcomes, self.axes)

    def summary(self, figure: str) -> pd.DataFrame:
        """Return a row for each case: the mean of *figure*, and more columns.

        ``low`` and ``high``: its 95 % interval; nan: unknown.  ``steady``: the figure in the steady part of a
        single run, which begins at ``steady_since_s``.
        """
        import pandas as pd

        rows = []
        for of in self._cases():
            interval = interval_of(FIGURES[known("summary()", figure, FIGURES)], of)
            steady = steady_of(FIGURES[figure], of[0]) if len(of) == 1 else None
            rows.append(
                {
                    "variant": of[0].variant, **of[0].point, "runs": len(of), COLUMNS[figure]: interval.mean,
                    "low": interval.low, "high": interval.high, "steady": steady and steady.value,
                    "steady_since_s": steady and steady.since,
                }
            )  # fmt: skip
        return pd.DataFrame(rows)

    def levels(self) -> pd.DataFrame:
        """Return a row for each sample of each run, with its time ``time_s``.

        Levels at this time:

        * ``dirty_mib`` and ``writeback_mib``, and the thresholds ``background_mib`` and ``limit_mib``.
        * ``flushers`` and ``held_writers``: the numbers of flushers, and of threads that the throttle holds.
        * ``NAME_queued``: the waiting requests of the disk NAME.

        Counters of the disk NAME from the start of the run to this time:

        * ``NAME_requests`` and ``NAME_written_mib`` (writes), ``NAME_reads``, and ``NAME_busy_s``.
        * ``NAME_write_wait_s`` and ``NAME_read_wait_s``: the sums of the waits.

        ``NAME_w_await_ms`` and ``NAME_r_await_ms``: the mean waits of the requests that completed since the
        previous sample; nan without requests.
        """
        import pandas as pd

        frames = []
        for of in self.outcomes:
            levels = pd.DataFrame(of.levels)
            columns: dict[str, object] = {
                **self._keys(of), "time_s": levels["time_ns"] / S,
                "dirty_mib": levels["dirty_pages"] * (PAGE_BYTES / MIB),
                "writeback_mib": levels["writeback_pages"] * (PAGE_BYTES / MIB),
                "background_mib": levels["background_pages"] * (PAGE_BYTES / MIB),
                "limit_mib": levels["limit_pages"] * (PAGE_BYTES / MIB),
                "flushers": levels["flushers"], "held_writers": levels["held"],
            }  # fmt: skip
            for disk in of.disks:
                columns[f"{disk}_requests"] = levels[f"{disk} ios"]
                columns[f"{disk}_busy_s"] = levels[f"{disk} busy_ns"] / S
                columns[f"{disk}_queued"] = levels[f"{disk} queued"]
                columns[f"{disk}_written_mib"] = levels[f"{disk} sectors"] * (SECTOR_BYTES / MIB)
                columns[f"{disk}_reads"] = levels[f"{disk} reads"]
                for way, waits, counter in (("w", "write_wait", "ios"), ("r", "read_wait", "reads")):
                    columns[f"{disk}_{waits}_s"] = levels[f"{disk} {waits}_ns"] / S
                    waited, ended = (
                        np.diff(levels[f"{disk} {name}"], prepend=0) for name in (f"{waits}_ns", counter)
                    )
                    columns[f"{disk}_{way}_await_ms"] = waited / np.where(ended, ended, np.nan) / MS
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True)

    def iterations(self) -> pd.DataFrame:
        """Return a row for each iteration of each program: the cumulative counters at its end."""
        import pandas as pd

        return pd.DataFrame(
            [{**self._keys(of), **asdict(sample)} for of in self.outcomes for sample in of.samples]
        )

    def lives(self) -> pd.DataFrame:
        """Return a row for each thread and cause, with its time ``time_s``.

        ``state`` is user, system, spinning, ready or waiting; ``cause`` is the reason within the state.
        """
        import pandas as pd

        rows = []
        for of in self.outcomes:
            for thread, life in of.lives.items():
                for name, ns in life.items():
                    state, _, cause = name.partition(" ")
                    rows.append(
                        {**self._keys(of), "thread": thread, "state": state, "cause": cause, "time_s": ns / S}
                    )
        return pd.DataFrame(rows)

    def explain(self) -> str:
        """Return a text with the bottleneck of each run, and with the time of its threads by cause."""
        return explanation(result_of(self._results()))

    def plot(
        self,
        x: str | None = None,
        y: str | Sequence[str] = "write_iops",
        by: str | Sequence[str] | None = None,
        where: Mapping[str, object] | None = None,
    ) -> Figure:
        """Return a picture with lines of the figures *y* against *x*.

        Bands are 95 % intervals over replications.  Other settings that differ at one point have panels.

        * *x*: a setting; None: the first swept key, or else the variant.
        * *by*: each combination of values of these settings has a line; None: each variant, and settings that
          differ at one *x*.
        * *where*: the runs to show, as a value or a list of values for each setting.
        """
        frame, choice = self._chosen("plot()", where)
        x = x if x is not None else self.axes[0] if self.axes else "variant"
        names = [known("plot()", name, FIGURES) for name in _texts(y)]
        if not names:
            raise bad("plot()", "is empty; give the name of a figure, such as write_iops", "y")
        lines = _texts(by) if by is not None else usual_lines(frame, known("plot()", x, map(str, frame)))
        for name in (x, *lines):
            known("plot()", name, map(str, frame))
        return against(frame, x, names, [line for line in lines if line != x], narrowed(self.title, choice))

    def heat_map(
        self, x: str, y: str, figure: str = "write_iops", where: Mapping[str, object] | None = None
    ) -> Figure:
        """Return maps of *figure* over the settings *x* and *y*; *where* chooses the runs, as in `plot`."""
        frame, choice = self._chosen("heat_map()", where)
        for name in (x, y):
            known("heat_map()", name, map(str, frame))
        if x == y:
            raise bad("heat_map()", f"is {x}, as x is; give another thing that was swept", "y")
        return heat_map(frame, x, y, known("heat_map()", figure, FIGURES), narrowed(self.title, choice))

    def over_time(self) -> Figure:
        """Return a picture of files, requests and bytes a second, and dirty memory, over simulated time."""
        seen = [of for of in self.outcomes if of.levels["time_ns"]]
        if not seen:
            raise bad("over_time()", "no run lasted until its levels were looked at once; make more files")
        return over_time(self.title, seen)

    def where_time_goes(self) -> Figure:
        """Return a picture of the time of the threads by cause, as bars."""
        return thread_times_picture(result_of(self._results()))

    def _results(self) -> Results:
        return Results(self.title, self.axes, list(self.outcomes), [])

    def _chosen(
        self, what: str, where: Mapping[str, object] | None
    ) -> tuple[pd.DataFrame, dict[str, list[object]]]:
        """Return the frame of the runs that *where* chooses, and the values of each of its keys as a list."""
        frame = self._named()
        settings = [*settings_of(frame), *IDENTITY]
        choice = {
            known(what, key, settings): list(value) if isinstance(value, list | tuple) else [value]
            for key, value in (where or {}).items()
        }
        return chosen(frame, choice, f"{what}: where"), choice

    def _named(self) -> pd.DataFrame:
        """Return `frame` with the names of figures as columns, without units."""
        return self.frame().rename(columns={column: name for name, column in COLUMNS.items()})

    def _keys(self, of: Outcome) -> dict[str, object]:
        return {"variant": of.variant, **of.point, "replication": of.replication}

    def _cases(self) -> list[list[Outcome]]:
        from wbsim.experiments.formats.report import by_case

        return by_case(self.outcomes)


def _texts(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names
