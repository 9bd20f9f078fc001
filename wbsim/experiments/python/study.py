"""An experiment in Python: load it, change it, run it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from html import escape
from pathlib import Path
from typing import Annotated, Final

import pandas as pd
from pydantic import Field

from wbsim.experiments.config.case import Case, Experiment
from wbsim.experiments.config.experiment import config_path, parse
from wbsim.experiments.config.experiment import load as load_experiment
from wbsim.experiments.config.problems import bad, list_names
from wbsim.experiments.config.sweeps import Asked
from wbsim.experiments.formats.numbers import number_rows
from wbsim.experiments.published.reproduce import Reproduction
from wbsim.experiments.published.reproduce import reproduce as reproduce_reports
from wbsim.experiments.python.arguments import check_arguments, is_there, list_of
from wbsim.experiments.python.findings import Findings
from wbsim.experiments.running.execute import How
from wbsim.experiments.running.layout import extents_of, laid_out
from wbsim.experiments.running.plan import PLAN
from wbsim.experiments.running.results import read_results
from wbsim.experiments.running.store import refuse_file
from wbsim.experiments.sweeps.run import precision_of, run_experiment
from wbsim.experiments.why.advise import REPLICATIONS, Advice, advise_on, title_of
from wbsim.experiments.why.sensitivity import Sensitivity, sensitivity

Count = Annotated[int, Field(ge=1, le=100_000)]
Sobol = Annotated[int, Field(ge=0, le=100_000)]
Seed = Annotated[int, Field(ge=0, lt=1 << 63)]
Directory = Annotated[str, Field(min_length=1)] | Path
_LONGEST_SHOWN: Final = 60
"""A representation has at most this many characters of each value."""


@dataclass(frozen=True, repr=False)
class Study:
    """An experiment that has not run yet: a configuration and its changes.

    `wbsim.load` and `wbsim.experiment` return a study.  A study never changes: `set`, `variant` and `vary`
    return another study.  Only `run` simulates.

    Attributes:
        source: The configuration: its path, or its text.
        changes: The changes of `set`, each as ``KEY=VALUE``.
        variant_name: The only variant that runs.  None: all variants.
        lists: The swept values of `vary`, each as ``KEY=VALUES``.
        together: Whether the lists are combined value by value; see `vary`.
        samples: The number of points of a Latin hypercube; see `vary`.  None: no hypercube.

    Example:
        >>> import wbsim
        >>> study = wbsim.load("question.toml")
        >>> study.set({"workload.loops": 2}).vary({"kernel.like": ["3.11", "6.17"]})
        Study('question.toml', changes=('workload.loops=2',), lists=('kernel.like="3.11","6.17"',))
    """

    source: Path | str
    changes: tuple[str, ...] = ()
    variant_name: str | None = None
    lists: tuple[str, ...] = ()
    together: bool = False
    samples: int | None = None

    def __repr__(self) -> str:
        """Return the source and all fields that differ from their defaults, cut where they are long."""
        source = self.source.name if isinstance(self.source, Path) else self.source
        settings = ((field.name, getattr(self, field.name), field.default) for field in fields(self)[1:])
        texts = [f"{name}={_cut(value)}" for name, value, default in settings if value != default]
        return f"Study({', '.join([_cut(source), *texts])})"

    @check_arguments
    def set(self, changes: Mapping[str, object]) -> Study:
        """Return a copy of this study with other values of some keys.

        A later change of a key replaces an earlier one.  `run` and `experiment` report unknown keys and wrong
        values.

        Args:
            changes: The new value of each key, such as ``{"workload.loops": 6}``.  docs/reference.md lists
                the keys.  A value is a number, a bool, a text, a list or a mapping.  A time, a size and a
                rate are texts with a unit: ``"2 ms"``, ``"4 GiB"``, ``"500 MB/s"``.  A factor is a text:
                ``"x2"`` doubles the value of the configuration.

        Returns:
            The changed study.

        Raises:
            BadInput: *changes* is not a mapping, or contains a number of more than 64 bits or a text with
                NUL.

        Example:
            >>> import wbsim
            >>> study = wbsim.load("question.toml")
            >>> larger = study.set({"machine.memory.memory": "256 MiB", "machine.device.speed": "x2"})
            >>> larger.experiment().cases[0].scenario.machine.memory.memory == 256 * 2**20
            True
        """
        more = tuple(f"{key}={_toml(value)}" for key, value in changes.items())
        return replace(self, changes=(*self.changes, *more))

    @check_arguments
    def variant(self, name: str) -> Study:
        """Return a copy of this study that runs one variant only.

        `run` and `experiment` report an unknown variant.

        Args:
            name: The name of the variant: the NAME of a table ``[variants.NAME]`` of the configuration.  A
                configuration without such tables has the variant ``base`` only.

        Returns:
            The changed study.

        Raises:
            BadInput: *name* is not a text.

        Example:
            >>> import wbsim
            >>> study = wbsim.load("plug.toml")
            >>> [case.variant for case in study.experiment().cases]
            ['unpatched', 'patched']
            >>> [case.variant for case in study.variant("patched").experiment().cases]
            ['patched']
        """
        return replace(self, variant_name=name)

    @check_arguments
    def vary(
        self, values: Mapping[str, object], *, together: bool = False, samples: Count | None = None
    ) -> Study:
        """Return a copy of this study that runs at several values of some keys.

        Each variant runs at each point of the sweep.  By default, the points are all combinations of the
        values.  After several calls, the keys of all calls are swept, with the *together* and the *samples*
        of the last call.  `run` and `experiment` report unknown keys, wrong values, lists of different
        lengths and more than 10 000 points.

        Args:
            values: A list of values for each key, in the forms that `set` describes.
            together: True: the first point has the first value of each key, the second point the second
                value, and so on.  The lists must have equal lengths.  Default: False.
            samples: The number of points, 1 to 10 000, of a Latin hypercube (``scipy.stats.qmc``, with a
                fixed seed).  Each key of *values* then has two values: its smallest and its largest.
                Default: None, no hypercube.

        Returns:
            The changed study.

        Raises:
            BadInput: a value of *values* is not a list, or *samples* is not a whole number above 0.

        Example:
            >>> import wbsim
            >>> study = wbsim.load("question.toml")
            >>> grid = study.vary({"workload.files": [250, 500], "kernel.like": ["3.11", "5.15", "6.17"]})
            >>> len(grid.experiment().cases)
            6
            >>> pairs = study.vary({"workload.files": [250, 500], "workload.loops": [8, 4]}, together=True)
            >>> [case.point for case in pairs.experiment().cases]
            [{'workload.files': 250, 'workload.loops': 8}, {'workload.files': 500, 'workload.loops': 4}]
            >>> ends = {"machine.memory.memory": ["64 MiB", "256 MiB"], "workload.files": [100, 500]}
            >>> len(study.vary(ends, samples=20).experiment().cases)
            20
        """
        join = ".." if samples is not None else ","
        lists = tuple(f"{key}={join.join(map(_toml, list_of(key, value)))}" for key, value in values.items())
        return replace(self, lists=(*self.lists, *lists), together=together, samples=samples)

    def experiment(self) -> Experiment:
        """Return the cases that `run` would simulate, without simulating them.

        Returns:
            The validated `Experiment`, with a case for each variant at each point of the sweep.

        Raises:
            BadInput: the configuration or a change has errors; the message lists the errors, each with its
                place and its remedy.

        Example:
            >>> import wbsim
            >>> experiment = wbsim.load("question.toml").vary({"workload.files": [250, 500]}).experiment()
            >>> experiment.axes
            ('workload.files',)
            >>> [case.label for case in experiment.cases]
            ['base-250', 'base-500']
        """
        sweep = Asked(self.lists, self.together, self.samples)
        if isinstance(self.source, Path):
            return load_experiment(self.source, self.changes, self.variant_name, sweep)
        return parse(self.source, "text", self.changes, self.variant_name, sweep)

    def _repr_html_(self) -> str:
        """Return the configuration, its changes, and its number of cases for a notebook."""
        experiment = self.experiment()
        settings = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(_cut(value))}</td></tr>"
            for name, value, default in settings
            if value != default
        )
        cases = len(experiment.cases)
        return (
            f"<p>{escape(experiment.title)}</p><table>{rows}"
            f"<tr><th>cases</th><td>{cases}, which run() simulates</td></tr></table>"
        )

    def show(self) -> pd.DataFrame:
        """Return every number of the only case, with its origin and its source, as ``wbsim show`` does.

        Returns:
            A frame with a row for each number.  The columns are ``path``, ``value``, ``unit``, ``origin`` and
            ``source``.  ``low`` and ``high`` are the range of an assumed number, None for other numbers.
            ``targets`` is a list of the published rows to which a number was fitted.  The value and its range
            are in the unit.

        Raises:
            BadInput: the configuration has errors, or the study has several cases; choose one with `variant`.

        Example:
            >>> import wbsim
            >>> numbers = wbsim.load("question.toml").show()
            >>> numbers.loc[numbers["path"] == "machine.processors.count", "value"].item()
            8
        """
        return pd.DataFrame(number_rows(self._only_case().scenario))

    @check_arguments
    def layout(self, *, mount: str | None = None, seed: Seed = 1) -> pd.DataFrame:
        """Simulate the only case up to a sync(2), and return its extents, as ``wbsim layout`` prints them.

        Args:
            mount: The name of the mount.  Default: the only mount.
            seed: The seed of the random numbers.  Default: 1.

        Returns:
            A frame with a row for each extent.  The columns are ``file`` (its number), ``file_offset_bytes``,
            ``disk_offset_bytes``, ``length_bytes``, and ``group`` (the allocation or block group).  Files
            that the model does not keep page by page, such as most files of fs_mark, are left out.

        Raises:
            BadInput: the configuration has errors, or the study has several cases.  Or there is no such
                mount, all of its files are left out, or the run cannot end.
            LawBroken: as `run` raises it.

        Example:
            >>> import wbsim
            >>> study = wbsim.load("question.toml").set(
            ...     {"workload.command": "dd if=/dev/zero of=/srv/f bs=1M count=20"}
            ... )
            >>> int(study.layout()["length_bytes"].sum()) == 20 * 2**20
            True
        """
        _, filesystem = laid_out(self._only_case(), mount, seed, "layout()")
        return pd.DataFrame(extents_of(filesystem))

    @check_arguments
    def advise(
        self, *, replications: Count = REPLICATIONS, seed: Seed = 1, jobs: Count | None = None
    ) -> Advice:
        """Find the smallest number of writeback contexts that is enough, as ``wbsim advise`` does.

        Args:
            replications: The runs of each number of contexts, each with other random numbers.  Default: 2.
            seed: The seed of the random numbers.  Default: 1.
            jobs: The number of worker processes.  Default: one for each processor.

        Returns:
            The advice: ``text()`` is its text, ``document()`` has the number and its range, and ``outcomes``
            are the runs.

        Raises:
            BadInput: the configuration or an argument has errors, or the study has several cases.  Or no
                context has work, or a run cannot end.
            LawBroken: as `run` raises it.
            RuntimeError: as `run` raises it.

        Example:
            >>> import wbsim
            >>> advice = wbsim.load("question.toml").set({"workload.loops": 2}).advise()
            >>> "enough" in advice.text()
            True
        """
        case = self._only_case()
        title = title_of(self.experiment(), case)
        return advise_on(case, title, How(seed, None, jobs), replications, "advise()")

    @check_arguments
    def sensitivity(
        self,
        figure: str = "wall_time",
        *,
        trajectories: Count = 6,
        most: Count = 5,
        sobol: Sobol = 32,
        seed: Seed = 1,
        jobs: Count | None = None,
    ) -> Sensitivity:
        """Return how far the assumed numbers could change a figure, as ``wbsim sensitivity`` does.

        Args:
            figure: The name of a figure, such as ``"write_iops"``.  Default: ``"wall_time"``.
            trajectories: The trajectories of Morris' method, 2 or more.  Default: 6.
            most: The number of assumed numbers in Sobol's method, those with the largest effects.
                Default: 5.
            sobol: The base samples of Sobol's method, a power of two; 0 leaves it out.  Default: 32.
            seed: The seed of the random numbers.  Default: 1.
            jobs: The number of worker processes.  Default: one for each processor.

        Returns:
            The analysis: ``text()`` is its text, and ``effects`` has the effect of each assumed number, the
            largest first.

        Raises:
            BadInput: the configuration or an argument has errors, or the study has several cases.  Or nothing
                can be varied, or the run without changes cannot end or writes nothing back.
            LawBroken: as `run` raises it.
            RuntimeError: as `run` raises it.

        Example:
            >>> import wbsim
            >>> study = wbsim.load("question.toml").set({"workload.loops": 2})
            >>> study.sensitivity("write_iops", trajectories=2, sobol=0).effects[0].mu_star > 0
            True
        """
        return sensitivity(self._only_case(), figure, How(seed, None, jobs), trajectories, most, sobol)

    def _only_case(self) -> Case:
        """Return the case of a study with a single one.

        Raises:
            BadInput: there are several.
        """
        cases = self.experiment().cases
        if len(cases) != 1:
            labels = list_names([case.label for case in cases])
            raise bad("Study", f"has {len(cases)} cases, {labels}; choose one with variant() or set()")
        return cases[0]

    @check_arguments
    def run(
        self,
        *,
        replications: Count | None = None,
        until_ci: str | None = None,
        seed: Seed = 1,
        out: Directory | None = None,
        jobs: Count | None = None,
        cluster: str | None = None,
        progress: bool | None = None,
    ) -> Findings:
        """Simulate all cases and return the results.

        Equal arguments give equal figures on any machine.  Replication r has the same random numbers in all
        cases, so compare two cases replication by replication.

        Args:
            replications: The number of runs of each case, 1 to 100 000, each with other random numbers.
                Default: the ``replications`` of the configuration, or else 1.
            until_ci: A figure and a precision, such as ``"write_iops=2%"``.  A case starts with five
                replications or more.  It gets more, up to 200, until half of the 95 % interval of the figure
                is at most this share of its mean.  ``wbsim list figures`` prints the figures.  Default: no
                precision.
            seed: The seed of the random numbers, 0 to 2**63 - 1.  Default: 1.
            out: The directory for the results, which `wbsim.results` reads.  Runs whose results are in the
                directory are not simulated again.  Default: results are not written.
            jobs: The number of worker processes, 1 to 100 000.  Default: one for each processor.
            cluster: The address of a dask scheduler, such as ``"tcp://host:8786"``, which takes the place of
                the worker processes.  Default: no cluster.
            progress: Whether to print a line of progress on stderr.  Default: only in terminals, so that a
                saved notebook has no such lines.

        Returns:
            The results of all runs.

        Raises:
            BadInput: the configuration or an argument has errors, a run cannot end, or *cluster* does not
                answer.  Or *out* cannot be written, or has another experiment or a damaged result.
            LawBroken: a run broke a law of the model, which is a fault of wbsim.
            RuntimeError: a run met another fault of wbsim.

        Example:
            >>> import wbsim
            >>> study = wbsim.load("question.toml").set({"workload.loops": 2})
            >>> found = study.run(replications=2, out="out")
            >>> len(found.frame())
            2
        """
        show_progress = progress if progress is not None else sys.stderr.isatty()
        precision = precision_of(until_ci, "run(): until_ci") if until_ci is not None else None
        experiment = self.experiment()
        directory = Path(out) if out is not None else None
        refuse_file(directory, "run(): out")
        how = How(seed, directory, jobs, cluster, "always" if show_progress else "nothing")
        batch = run_experiment(experiment, how, replications, precision)
        return Findings(experiment.title, experiment.axes, tuple(batch.all_outcomes()))


def _cut(value: object) -> str:
    """Return the representation of *value*, cut after `_LONGEST_SHOWN` characters."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _toml(value: object) -> str:
    """Return *value* as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return str(value)


@check_arguments
def load(source: str | Path) -> Study:
    """Read the configuration of an experiment from a file.

    Args:
        source: The path of a TOML file.  If there is no such file: the name of a configuration that comes
            with wbsim, in wbsim/experiments/configs, such as ``"question.toml"`` or ``"plug.toml"``.

    Returns:
        The study of the configuration; it has not run yet.

    Raises:
        BadInput: the file does not exist, or the configuration has errors.

    Example:
        >>> import wbsim
        >>> study = wbsim.load("question.toml")
        >>> found = study.set({"workload.loops": 2}).run()
    """
    path = Path(source)
    if not is_there(path) and is_there(config_path(path.name)):
        path = config_path(path.name)
    study = Study(path)
    study.experiment()
    return study


@check_arguments
def experiment(text: str) -> Study:
    """Read the configuration of an experiment from a text.

    Args:
        text: The configuration, in TOML.  docs/configurations.md describes its keys.

    Returns:
        The study of the configuration; it has not run yet.

    Raises:
        BadInput: the configuration has errors.

    Example:
        >>> import wbsim
        >>> study = wbsim.experiment('''
        ... title = "two writers of small files"
        ... [scenario]
        ... machine.like = "p13-vm"
        ... kernel.like = "6.17"
        ... filesystem.like = "p13-xfs"
        ... workload.command = "fs_mark -S0 -n 200 -s 4096 -L 3 -d a -d b"
        ... ''')
        >>> study.experiment().title
        'two writers of small files'
    """
    study = Study(text)
    study.experiment()
    return study


@check_arguments
def results(directory: str | Path) -> Findings:
    """Read results from a directory.

    Args:
        directory: The directory that ``wbsim run --out``, ``wbsim sweep --out`` or ``Study.run(out=...)``
            has written.

    Returns:
        The results of the runs that have ended.  Runs that are missing are left out.

    Raises:
        BadInput: *directory* has no result of a run that has ended, or a result is damaged.

    Example:
        >>> import wbsim
        >>> ran = wbsim.load("question.toml").set({"workload.loops": 2}).run(out="out")
        >>> wbsim.results("out").frame().equals(ran.frame())
        True
    """
    path = Path(directory)
    if not is_there(path / PLAN):
        raise bad(str(path), f"has no results ({PLAN} is missing); make some with Study.run(out=...)")
    contents = read_results(path)
    return Findings(contents.title, contents.axes, tuple(contents.outcomes))


@check_arguments
def reproduce(*reports: str, quick: bool = False, seed: Seed = 1, jobs: Count | None = None) -> Reproduction:
    """Simulate the experiments of published reports, and compare the figures, as ``wbsim reproduce`` does.

    Args:
        reports: The names of reports, such as ``"P13"``.  Default: all reports.
        quick: True: run smaller experiments, which need less time and memory.  Default: False.
        seed: The seed of the random numbers.  Default: 1.
        jobs: The number of worker processes.  Default: one for each processor.

    Returns:
        The comparison: ``rows`` has a `Row` for each published figure, and ``document()`` all of it.

    Raises:
        BadInput: there is no such report, an argument has errors, or a run cannot end.
        LawBroken: as `Study.run` raises it.
        RuntimeError: as `Study.run` raises it.

    Example:
        >>> import wbsim
        >>> rows = wbsim.reproduce("J09", quick=True).rows
        >>> rows[0].id
        'J09-util-u'
    """
    return reproduce_reports(reports, quick=quick, replications=None, how=How(seed, None, jobs))
