"""The results of an experiment in Python: tidy frames with units in their columns, and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from wbsim.experiments.config.problems import bad
from wbsim.experiments.formats.report import outcome_rows, outcome_table
from wbsim.experiments.pictures.facets import narrowed, select, settings_of, usual_lines
from wbsim.experiments.pictures.latency import latency_picture
from wbsim.experiments.pictures.maps import heat_map
from wbsim.experiments.pictures.plots import line_picture
from wbsim.experiments.pictures.thread_times import thread_times_picture
from wbsim.experiments.pictures.time import over_time
from wbsim.experiments.python.arguments import check_name
from wbsim.experiments.results.dataset import IDENTITY, jobs_frame, tidy
from wbsim.experiments.results.figures import COLUMNS, FIGURES, READ
from wbsim.experiments.results.intervals import interval_of, steady_of
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.results import Results
from wbsim.experiments.why.explain import explanation, result_of
from wbsim.sim.units import MIB, MS, SECTOR_BYTES, US, S

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Findings:
    """The results of runs, as tidy frames of pandas and as figures of matplotlib.

    `Study.run` and `wbsim.results` return findings.  Their representation is a table with a row for each
    case.  A frame is tidy: each row is one observation, and each column has its unit in its name.  Every
    frame begins with the columns ``variant`` and the swept keys.

    A picture is a ``matplotlib.figure.Figure``: write it with ``.savefig("name.png")``, or show it in a
    notebook after ``%matplotlib inline``.

    Attributes:
        title: The title of the experiment.
        axes: The swept keys.
        outcomes: The `Outcome` of each run, with the numbers of each program, disk, mount and lock.

    Example:
        >>> import wbsim
        >>> found = wbsim.load("question.toml").vary({"workload.files": [100, 200]}).run()
        >>> found.axes
        ('workload.files',)
        >>> len(found.outcomes)
        2
    """

    title: str
    axes: tuple[str, ...]
    outcomes: tuple[Outcome, ...]

    def __repr__(self) -> str:
        return f"{self.title}\n{outcome_table(self.outcomes, self.axes)}"

    def _repr_html_(self) -> str:
        """Return the title and the table of cases for a notebook."""
        import pandas as pd

        header, rows = outcome_rows(self.outcomes, self.axes)
        table = pd.DataFrame(rows, columns=list(header)).to_html(index=False, border=0)
        return f"<p>{escape(self.title)}</p>{table}"

    def frame(self) -> pd.DataFrame:
        """Return all figures of all runs.

        Returns:
            A frame with a row for each run.  The columns are ``variant``, the swept keys, ``replication``,
            ``seed``, and one for each name of ``wbsim list figures``.  The column of a figure has the unit in
            its name, such as ``write_iops_per_s`` and ``wall_time_s``.  An unknown figure, such as the mean
            size of no requests, is nan.  A swept quantity is a number in its base unit (ns, bytes, bytes a
            second).  The values of a key are texts if one of them is not a number.

        Example:
            >>> import wbsim
            >>> found = wbsim.load("question.toml").vary({"workload.files": [100, 200]}).run()
            >>> frame = found.frame()
            >>> list(frame.columns[:5])
            ['variant', 'workload.files', 'replication', 'seed', 'wall_time_s']
            >>> len(frame)
            2
        """
        return tidy(self.outcomes, self.axes)

    def summary(self, figure: str) -> pd.DataFrame:
        """Return the mean of one figure and its 95 % interval, for each case.

        The interval is Student's t over the replications.  A case with a single run has the interval of the
        batch means of its iterations, which describes the scatter within this run.  MSER-5 (White, 1997)
        finds the steady part of a run.

        Args:
            figure: The name of a figure, such as ``"write_iops"``; ``wbsim list figures`` prints all names
                with their units.

        Returns:
            A frame with a row for each case.  The columns are ``variant``, the swept keys, and:

            * ``runs``: the number of runs.
            * the figure, by the name of its column in `frame`: the mean over the runs.
            * ``low`` and ``high``: the ends of the interval, in the unit of the figure; nan: unknown.
            * ``steady``: the figure in the steady part of a single run, in its unit.  None or nan: several
              runs, too few iterations, or a figure that grows with the length of the run.
            * ``steady_since_s``: the simulated time at which the steady part begins (s); None or nan as
              above.

        Raises:
            BadInput: *figure* is not the name of a figure.

        Example:
            >>> import wbsim
            >>> found = wbsim.load("question.toml").set({"workload.loops": 3}).run(replications=3)
            >>> summary = found.summary("write_iops")
            >>> list(summary.columns)[:5]
            ['variant', 'runs', 'write_iops_per_s', 'low', 'high']
            >>> bool((summary["low"] < summary["high"]).all())
            True
        """
        import pandas as pd

        rows = []
        for runs in self._cases():
            interval = interval_of(FIGURES[check_name("summary()", figure, FIGURES)], runs)
            steady = steady_of(FIGURES[figure], runs[0]) if len(runs) == 1 else None
            rows.append(
                {
                    "variant": runs[0].variant, **runs[0].point, "runs": len(runs),
                    COLUMNS[figure]: interval.mean, "low": interval.low, "high": interval.high,
                    "steady": steady and steady.value, "steady_since_s": steady and steady.start_s,
                }
            )  # fmt: skip
        return pd.DataFrame(rows)

    def levels(self) -> pd.DataFrame:
        """Return dirty memory, threads and disks over simulated time.

        A run is sampled every 10 ms of simulated time.  At 512 samples every second one is dropped, and the
        step doubles.  So a run that is shorter than 10 ms has no row, and a long run has 256 to 512 rows.

        Returns:
            A frame with a row for each sample of each run.  The columns are ``variant``, the swept keys,
            ``replication``, and ``time_s``, the simulated time of the sample (s).

            Levels at this time:

            * ``dirty_mib`` and ``writeback_mib``: the memory that is dirty, and under writeback (MiB).
            * ``background_mib`` and ``limit_mib``: the background threshold, and the limit of dirty memory
              (MiB).
            * ``flushers``: the number of flushers.
            * ``held_writers``: the number of threads of programs that the throttle holds.
            * ``NAME_queued``: the requests of the disk NAME that wait or are in the driver.
            * The columns of all other figures that are read from the machine (docs/reference.md, Figures).

            Counters of the disk NAME from the start of the run to this time:

            * ``NAME_requests`` and ``NAME_reads``: completed write and read requests.
            * ``NAME_written_mib``: the written amount (MiB).
            * ``NAME_busy_s``: the time with a request in the queue or the driver (s).
            * ``NAME_write_wait_s`` and ``NAME_read_wait_s``: the sums of the waits of requests (s).

            Means since the previous sample:

            * ``NAME_w_await_ms`` and ``NAME_r_await_ms``: the wait of a write and of a read request (ms), as
              iostat has them.  A value is nan if no request completed.

        Example:
            >>> import wbsim
            >>> found = wbsim.load("question.toml").run()
            >>> levels = found.levels()
            >>> list(levels.columns[:4])
            ['variant', 'replication', 'time_s', 'dirty_mib']
            >>> bool((levels["dirty_mib"] + levels["writeback_mib"]).max() <= levels["limit_mib"].max())
            True
        """
        import pandas as pd

        frames = []
        for outcome in self.outcomes:
            levels = pd.DataFrame(outcome.levels)
            columns: dict[str, object] = {
                **self._keys(outcome), "time_s": levels["time_ns"] / S,
                **{COLUMNS[name]: levels[name] for name in READ},
            }  # fmt: skip
            for disk in outcome.disks:
                columns[f"{disk}_requests"] = levels[f"{disk} ios"]
                columns[f"{disk}_busy_s"] = levels[f"{disk} busy_ns"] / S
                columns[f"{disk}_queued"] = levels[f"{disk} queued"]
                columns[f"{disk}_written_mib"] = levels[f"{disk} sectors"] * (SECTOR_BYTES / MIB)
                columns[f"{disk}_reads"] = levels[f"{disk} reads"]
                for way, waits, counter in (("w", "write_wait", "ios"), ("r", "read_wait", "reads")):
                    columns[f"{disk}_{waits}_s"] = levels[f"{disk} {waits}_ns"] / S
                    wait_ns, count = (
                        np.diff(levels[f"{disk} {name}"], prepend=0) for name in (f"{waits}_ns", counter)
                    )
                    columns[f"{disk}_{way}_await_ms"] = wait_ns / np.where(count, count, np.nan) / MS
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True)

    def iterations(self) -> pd.DataFrame:
        """Return the progress of each program at the end of each of its iterations.

        An iteration is what the program reports at once, such as one loop of fs_mark.

        Returns:
            A frame with a row for each iteration of each program of each run.  The columns are ``variant``,
            the swept keys, ``replication``, ``program``, and:

            * ``end_ns``: the simulated time of the end of the iteration (ns).
            * ``files_per_sec``: the rate of the iteration, over all processes of the program (1/s).
            * ``app_overhead_us``: the program's own time in the iteration (us).
            * ``count``: the files of the program from its start.
            * ``system_ns``: the program's processor time in the kernel from its start (ns).
            * ``ios``, ``merges``, ``sectors`` and ``write_wait_ns``: the write requests, the merged bios, the
              written sectors of 512 bytes and the sum of the waits (ns) of all disks from the run's start.
            * ``reads`` and ``read_wait_ns``: the read requests and the sum of their waits (ns).
            * The columns of all figures that are read from the machine, at this time.

        Example:
            >>> import wbsim
            >>> found = wbsim.load("question.toml").set({"workload.loops": 2}).run()
            >>> list(found.iterations()["count"])  # 4 directories with 500 files in each loop
            [2000, 4000]
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    **self._keys(outcome),
                    **{name: value for name, value in asdict(sample).items() if name != "readings"},
                    **{COLUMNS[name]: value for name, value in sample.readings.items()},
                }
                for outcome in self.outcomes
                for sample in outcome.samples
            ]
        )

    def lives(self) -> pd.DataFrame:
        """Return how each thread spent its time.

        Returns:
            A frame with a row for each thread and each cause of each run.  The times of a thread add up to
            the length of the run.  The columns are ``variant``, the swept keys, ``replication``, and:

            * ``thread``: the name of the thread, such as ``fs_mark/process 1``.
            * ``state``: user (the program itself), system (in the kernel), spinning (for a lock), ready
              (waits for a processor) or waiting (sleeps).
            * ``cause``: the path of the kernel, the lock, or the reason of the sleep; empty for user.
            * ``time_s``: the simulated time (s).

        Example:
            >>> import wbsim
            >>> lives = wbsim.load("question.toml").set({"workload.loops": 2}).run().lives()
            >>> list(lives.columns)
            ['variant', 'replication', 'thread', 'state', 'cause', 'time_s']
            >>> per_state = lives.groupby("state")["time_s"].sum()
        """
        import pandas as pd

        rows = []
        for outcome in self.outcomes:
            for thread, life in outcome.lives.items():
                for name, ns in life.items():
                    state, _, cause = name.partition(" ")
                    rows.append(
                        {
                            **self._keys(outcome),
                            "thread": thread,
                            "state": state,
                            "cause": cause,
                            "time_s": ns / S,
                        }
                    )
        return pd.DataFrame(rows)

    def latencies(self) -> pd.DataFrame:
        """Return how long the system calls of each program took.

        Returns:
            A frame with a row for each kind of call of each program of each run.  The columns are
            ``variant``, the swept keys, ``replication``, ``program``, and:

            * ``call``: the name of the call, such as ``write`` or ``fsync``.
            * ``calls``: the number of calls.
            * ``mean_us``, ``p50_us``, ``p90_us``, ``p99_us``, ``p99_9_us`` and ``max_us``: the mean, the
              percentiles and the longest of their latencies (us).

            A latency lasts from the begin of a call until the program goes on.  A percentile is the middle of
            one of fio's bins, which are 1.6 % wide.  Calls for files that were not simulated, because the
            pace was steady, are left out.

        Example:
            >>> import wbsim
            >>> latencies = wbsim.load("question.toml").run().latencies()
            >>> list(latencies["call"])
            ['mkdir', 'creat', 'write', 'close']
        """
        import pandas as pd

        rows = []
        for outcome in self.outcomes:
            for name, program in outcome.programs.items():
                for call, calls in program.calls.items():
                    percentiles = {
                        f"p{percent.replace('.', '_')}_us": ns / US
                        for percent, ns in calls.percentiles_ns.items()
                    }
                    rows.append(
                        {
                            **self._keys(outcome), "program": name, "call": call, "calls": calls.count,
                            "mean_us": calls.mean_ns / US, **percentiles, "max_us": calls.max_ns / US,
                        }
                    )  # fmt: skip
        return pd.DataFrame(rows)

    def jobs(self) -> pd.DataFrame:
        """Return what each job of fio did.

        Returns:
            A frame with a row for each job of each run.  The columns are ``variant``, the swept keys,
            ``replication``, ``seed``, ``program``, ``job``, and:

            * ``time_s``: from the begin of its first process until the end of its last, without the start of
              fio (s).
            * ``file_count``, ``written_mb`` and ``writes``: the number of files that it wrote to, the amount
              (MB) and the number of its writes.
            * ``bandwidth_mb_per_s`` and ``iops_per_s``: what it wrote for each second of that time (MB/s,
              1/s).
            * ``system_cpu_time_s`` and ``user_cpu_time_s``: the processor time of its processes, in the
              kernel and outside (s).
            * ``write_calls``, ``write_p50_us`` and so on: for each kind of call, the number of calls, the
              percentiles and the longest of their latencies (us); nan for a job without such a call.

            Without jobs of fio, the frame has neither rows nor columns.

        Example:
            >>> import wbsim
            >>> smaller = {"programs.create.files": 100, "programs.rewrite.filesize": "1 MiB"}
            >>> jobs = wbsim.load("two_disks.toml").set(smaller).run().jobs()
            >>> list(jobs["job"])
            ['j0']
        """
        return jobs_frame(self.outcomes, self.axes)

    def explain(self) -> str:
        """Return a text with the bottleneck of each case, and how its threads spent their time.

        The text is that of ``wbsim explain``; docs/why.md describes it.  The bottleneck is the resource with
        the highest utilisation.  Only the first replication of each case counts.

        Returns:
            The text.  The times of threads are in % of the run.  With two variants and no sweep, a table of
            the flushers follows (us a file, or us a MiB of large files).

        Raises:
            BadInput: nothing was written back in any run, or a damaged result has no times of threads.

        Example:
            >>> import wbsim
            >>> text = wbsim.load("question.toml").run().explain()
            >>> "held back by" in text
            True
        """
        return explanation(result_of(self._results()))

    def plot(
        self,
        x: str | None = None,
        y: str | Sequence[str] = "write_iops",
        by: str | Sequence[str] | None = None,
        where: Mapping[str, object] | None = None,
    ) -> Figure:
        """Return a picture with lines of one or several figures against a swept key.

        A point is the mean of the replications.  A band or an error bar is its 95 % interval over the
        replications; a single run has none.  The figures stand one above the other, each with its unit.  If
        runs at one point of a line still differ in a key, each value of this key has a panel, up to six.

        Args:
            x: The horizontal axis: a swept key, ``"variant"``, ``"replication"``, ``"seed"``, or the name of
                a figure.  Default: the first swept key; without a sweep, the variant.
            y: The name of a figure, or a list of names, such as ``["write_iops", "file_rate"]``.  ``wbsim
                list figures`` prints all names with their meanings.  The names have no unit: ``"wall_time"``
                is in s, and the frame calls it ``wall_time_s``.  Default: ``"write_iops"``, the write
                requests a second.
            by: A name like those for *x*, or a list of names.  Each combination of their values has a line.
                Default: each variant has a line, and so has each value of other keys that differ at one *x*.
                Of more than ten lines, the first keys become panels.
            where: The runs to show: a value, or a list of values, for each key.  The keys are the swept keys,
                ``"variant"``, ``"replication"`` and ``"seed"``.  Example: ``{"variant": "base"}``.  Default:
                all runs.

        Returns:
            A figure of matplotlib; ``.savefig("name.png")`` writes it.

        Raises:
            BadInput: a name is unknown, *y* is empty, or no run has a value of *where*.  Or the picture would
                have more than six panels side by side.

        Example:
            >>> import wbsim
            >>> study = wbsim.load("question.toml").set({"workload.loops": 3})
            >>> found = study.vary({"kernel.like": ["3.11", "6.17"]}).run(replications=2)
            >>> found.plot(y=["write_iops", "file_rate"]).savefig("kernels.png")
            >>> found.plot("replication", "wall_time", by="kernel.like").savefig("runs.png")
        """
        frame, choice = self._choose("plot()", where)
        x = x if x is not None else self.axes[0] if self.axes else "variant"
        names = [check_name("plot()", name, FIGURES) for name in _texts(y)]
        if not names:
            raise bad("plot()", "is empty; give the name of a figure, such as write_iops", "y")
        lines = _texts(by) if by is not None else usual_lines(frame, check_name("plot()", x, map(str, frame)))
        for name in (x, *lines):
            check_name("plot()", name, map(str, frame))
        return line_picture(
            frame, x, names, [line for line in lines if line != x], narrowed(self.title, choice)
        )

    def latency_picture(
        self,
        call: str = "fsync",
        by: str | Sequence[str] | None = None,
        where: Mapping[str, object] | None = None,
    ) -> Figure:
        """Return a picture with the distribution of the latencies of a system call, over all programs.

        A line shows what a share of the calls does not exceed; replications are one line.  90, 99 and 99.9 %
        are equally far apart, and the latency has a logarithmic scale.

        Args:
            call: The name of the system call, such as ``"write"``; fdatasync is another call than fsync.
                Default: ``"fsync"``.
            by: A swept key, ``"variant"``, ``"replication"`` or ``"seed"``, or a list of such names.  Each
                combination of their values has a line.  Default: all swept keys and the variant; of more than
                ten lines, the first keys become panels.
            where: The runs to show: a value, or a list of values, for each key, as in `plot`.  Default: all
                runs.

        Returns:
            A figure of matplotlib; ``.savefig("name.png")`` writes it.

        Raises:
            BadInput: no run has such a call, a name is unknown, or no run has a value of *where*.  Or the
                picture would have more than six panels.

        Example:
            >>> import wbsim
            >>> study = wbsim.load("question.toml").set({"workload.loops": 3})
            >>> found = study.vary({"kernel.like": ["3.11", "6.17"]}).run()
            >>> found.latency_picture("write").savefig("latency.png")
        """
        frame, choice = self._choose("latency_picture()", where)
        lines = _texts(by) if by is not None else usual_lines(frame, "replication")
        for name in lines:
            check_name("latency_picture()", name, map(str, frame))
        return latency_picture(frame, self.outcomes, call, lines, narrowed(self.title, choice))

    def heat_map(
        self, x: str, y: str, figure: str = "write_iops", where: Mapping[str, object] | None = None
    ) -> Figure:
        """Return a picture with a map of one figure over two swept keys.

        A cell has the mean of its runs as a number and as a colour.  A cell without a run is blank.  Each
        variant has a map, and so has each value of another key that differs between runs of one cell, up to
        six maps.

        Args:
            x: The horizontal axis: a swept key, ``"variant"``, ``"replication"``, ``"seed"``, or the name of
                a figure.
            y: The vertical axis: another such name.
            figure: The name of the figure; ``wbsim list figures`` prints all names with their units.
                Default: ``"write_iops"``, the write requests a second.
            where: The runs to show: a value, or a list of values, for each key, as in `plot`.  Default: all
                runs.

        Returns:
            A figure of matplotlib; ``.savefig("name.png")`` writes it.

        Raises:
            BadInput: a name is unknown, *x* and *y* are equal, or no run has a value of *where*.  Or the
                picture would have more than six maps.

        Example:
            >>> import wbsim
            >>> sweep = {"workload.files": [100, 200], "kernel.like": ["3.11", "6.17"]}
            >>> found = wbsim.load("question.toml").vary(sweep).run()
            >>> found.heat_map("workload.files", "kernel.like", "file_rate").savefig("map.png")
        """
        frame, choice = self._choose("heat_map()", where)
        for name in (x, y):
            check_name("heat_map()", name, map(str, frame))
        if x == y:
            raise bad("heat_map()", f"is {x}, the value of x too; give another swept key", "y")
        return heat_map(frame, x, y, check_name("heat_map()", figure, FIGURES), narrowed(self.title, choice))

    def over_time(self) -> Figure:
        """Return a picture of each case over simulated time (s).

        Each case has a colour.  Only the first replication is drawn.  The panels, from top to bottom:

        * files a second, if a program has several iterations
        * for each disk: write requests a second, MB a second, w_await (ms), r_await (ms) if a disk reads, and
          the utilisation (% busy)
        * the number of flushers, and of writers that the throttle holds
        * memory that is dirty or under writeback, with the thresholds (MiB)

        Returns:
            A figure of matplotlib; ``.savefig("name.png")`` writes it.

        Raises:
            BadInput: no run has levels, because each ended before the first sample (10 ms of simulated time).

        Example:
            >>> import wbsim
            >>> found = wbsim.load("question.toml").run()
            >>> found.over_time().savefig("time.png")
        """
        outcomes = [outcome for outcome in self.outcomes if outcome.levels["time_ns"]]
        if not outcomes:
            raise bad(
                "over_time()", "all runs ended before the first sample of their levels; make more files"
            )
        return over_time(self.title, outcomes)

    def where_time_goes(self) -> Figure:
        """Return a picture of how the threads of each case spent their time, in % of the run.

        Without a sweep, each case has a panel with a bar for each kind of thread.  With a sweep, each kind of
        thread has a panel with a bar for each case.  A bar is divided by cause: work has warm colours and
        waiting has cold colours.  Spinning is red, and idle time is white.  docs/causes.md has the causes.
        Only the first replication of each case is drawn.

        Returns:
            A figure of matplotlib; ``.savefig("name.png")`` writes it.

        Raises:
            BadInput: nothing was written back in any run, or a damaged result has no times of threads.

        Example:
            >>> import wbsim
            >>> found = wbsim.load("question.toml").run()
            >>> found.where_time_goes().savefig("threads.png")
        """
        return thread_times_picture(result_of(self._results()))

    def _results(self) -> Results:
        return Results(self.title, self.axes, list(self.outcomes), [])

    def _choose(
        self, place: str, where: Mapping[str, object] | None
    ) -> tuple[pd.DataFrame, dict[str, list[object]]]:
        """Return the frame of the runs that *where* chooses, and the values of each of its keys as a list."""
        frame = self._unitless_frame()
        settings = [*settings_of(frame), *IDENTITY]
        choice = {
            check_name(place, key, settings): list(value) if isinstance(value, list | tuple) else [value]
            for key, value in (where or {}).items()
        }
        return select(frame, choice, f"{place}: where"), choice

    def _unitless_frame(self) -> pd.DataFrame:
        """Return `frame` with the names of figures as columns, without units."""
        return self.frame().rename(columns={column: name for name, column in COLUMNS.items()})

    def _keys(self, outcome: Outcome) -> dict[str, object]:
        return {"variant": outcome.variant, **outcome.point, "replication": outcome.replication}

    def _cases(self) -> list[list[Outcome]]:
        from wbsim.experiments.formats.report import by_case

        return by_case(self.outcomes)


def _texts(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names
