"""What was measured, in Python: tidy frames with units in their names, and pictures."""

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
    """The outcomes of runs: `frame` and its kin are tidy (a row an observation), pictures matplotlib's."""

    title: str
    axes: tuple[str, ...]
    outcomes: tuple[Outcome, ...]

    def __repr__(self) -> str:
        return f"{self.title}\n{outcome_table(self.outcomes, self.axes)}"

    def frame(self) -> pd.DataFrame:
        """A row for each run: ``variant``, what was swept, ``replication``, ``seed``, and each figure with
        its unit in its name (``write_iops_per_s``, ``wall_time_s`` ...).
        """
        return tidy(self.outcomes, self.axes)

    def summary(self, figure: str) -> pd.DataFrame:
        """A row for each case: the mean of *figure*, ``low`` and ``high`` of its 95 % interval (nan without
        one), and
        ``steady``, that of the steady part of a single run, which begins ``steady_since_s``.
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
        """Return a row for each sample of each run, by its ``time_s``.

        Levels at that time: ``dirty_mib`` and ``writeback_mib``, the thresholds ``background_mib`` and
        ``limit_mib``, the number of ``flushers`` and of ``held_writers``, and the requests ``NAME_queued`` of
        each disk.  Counters of each disk until then: ``NAME_requests`` and ``NAME_written_mib`` of writes,
        ``NAME_busy_s``, ``NAME_reads``, and the summed waits ``NAME_write_wait_s`` and ``NAME_read_wait_s``.
        ``NAME_w_await_ms`` and ``NAME_r_await_ms`` are the mean waits of the requests that completed since
        the sample before; nan without any.
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
        """A row for each iteration of each program: its cumulative counters when it ended."""
        import pandas as pd

        return pd.DataFrame(
            [{**self._keys(of), **asdict(sample)} for of in self.outcomes for sample in of.samples]
        )

    def lives(self) -> pd.DataFrame:
        """A row for each thread and cause: ``state`` (user, system, spinning, ready, waiting), ``cause``,
        ``time_s``.
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
        """What held each run back, and where its threads' lives went."""
        return explanation(result_of(self._results()))

    def plot(
        self,
        x: str | None = None,
        y: str | Sequence[str] = "write_iops",
        by: str | Sequence[str] | None = None,
        where: Mapping[str, object] | None = None,
    ) -> Figure:
        """Return lines of the figures *y* against *x* (by default the first thing that was swept).

        Each variant, or each combination of values of *by*, has a line; bands are 95 % intervals over
        replications.  Other settings that differ at one point have panels.  *where* chooses runs: it has a
        value, or a list of values, for each of its keys.
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
        """Return maps of one *figure* over two things that were swept; *where* chooses runs, as in `plot`."""
        frame, choice = self._chosen("heat_map()", where)
        for name in (x, y):
            known("heat_map()", name, map(str, frame))
        if x == y:
            raise bad("heat_map()", f"is {x}, as x is; give another thing that was swept", "y")
        return heat_map(frame, x, y, known("heat_map()", figure, FIGURES), narrowed(self.title, choice))

    def over_time(self) -> Figure:
        """Files, requests and bytes a second, and what is dirty, over simulated time."""
        seen = [of for of in self.outcomes if of.levels["time_ns"]]
        if not seen:
            raise bad("over_time()", "no run lasted until its levels were looked at once; make more files")
        return over_time(self.title, seen)

    def where_time_goes(self) -> Figure:
        """The lives of the threads, as bars."""
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
        """The frame with figures by their bare names."""
        return self.frame().rename(columns={column: name for name, column in COLUMNS.items()})

    def _keys(self, of: Outcome) -> dict[str, object]:
        return {"variant": of.variant, **of.point, "replication": of.replication}

    def _cases(self) -> list[list[Outcome]]:
        from wbsim.experiments.formats.report import by_case

        return by_case(self.outcomes)


def _texts(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names
