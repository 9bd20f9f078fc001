"""An experiment in Python: load it, change it, run it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from wbsim.experiments.config.case import Experiment
from wbsim.experiments.config.experiment import config_path, parse
from wbsim.experiments.config.experiment import load as load_experiment
from wbsim.experiments.config.problems import bad
from wbsim.experiments.config.sweeps import Asked
from wbsim.experiments.python.arguments import checked, is_there, listed
from wbsim.experiments.python.findings import Findings
from wbsim.experiments.running.execute import How
from wbsim.experiments.running.plan import PLAN
from wbsim.experiments.running.results import read_results
from wbsim.experiments.running.store import refuse_file
from wbsim.experiments.sweeps.run import precision_of, run_experiment

Count = Annotated[int, Field(ge=1, le=100_000)]


@dataclass(frozen=True)
class Study:
    """An experiment with changes; it runs only by `run`.

    * ``source``: the path or the text of its configuration.
    * ``changes``: overrides, in the form of ``--set``.
    * ``only``: the one variant to run; None: all variants.
    * ``lists``: the swept values, in the form of ``wbsim sweep --set``; ``together`` and ``samples``: see
      `vary`.
    """

    source: Path | str
    changes: tuple[str, ...] = ()
    only: str | None = None
    lists: tuple[str, ...] = ()
    together: bool = False
    samples: int | None = None

    @checked
    def set(self, changes: Mapping[str, object]) -> Study:
        """Return this study with other values of the keys of *changes*.

        A value is a number, a text, a quantity (``"4 GiB"``) or a factor (``"x2"``).
        """
        more = tuple(f"{key}={_toml(value)}" for key, value in changes.items())
        return replace(self, changes=(*self.changes, *more))

    @checked
    def variant(self, name: str) -> Study:
        """Return this study with only the variant *name*."""
        return replace(self, only=name)

    @checked
    def vary(
        self, values: Mapping[str, object], *, together: bool = False, samples: Count | None = None
    ) -> Study:
        """Return this study with a sweep over *values*, which has a list of values for each key.

        By default, the sweep has every combination of the values.

        * *together*: the sweep combines the first values of all keys, then the second values, and so on.
        * *samples*: the sweep has this many points of a Latin hypercube, between the two ends of each key.
        """
        join = ".." if samples is not None else ","
        lists = tuple(f"{key}={join.join(map(_toml, listed(key, of)))}" for key, of in values.items())
        return replace(self, lists=(*self.lists, *lists), together=together, samples=samples)

    def experiment(self) -> Experiment:
        """Return the experiment with its validated cases.

        Raises:
            BadInput: the configuration has errors; all are given, with place and remedy.
        """
        asked = Asked(self.lists, self.together, self.samples)
        if isinstance(self.source, Path):
            return load_experiment(self.source, self.changes, self.only, asked)
        return parse(self.source, "text", self.changes, self.only, asked)

    @checked
    def run(
        self,
        *,
        replications: Count | None = None,
        until_ci: str | None = None,
        seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 1,
        out: Annotated[str, Field(min_length=1)] | Path | None = None,
        jobs: Count | None = None,
        cluster: str | None = None,
        progress: bool | None = None,
    ) -> Findings:
        """Simulate every case, and return the results.

        * *replications*: the runs of each case, each with other random numbers; None: as the configuration
          says.
        * *until_ci*: add replications until a figure has this precision (``"write_iops=2%"``).
        * *seed*: the seed of the random numbers.
        * *out*: the directory for the results; results that exist in this directory are not simulated again.
        * *jobs*: the number of worker processes; None: one for each processor.
        * *cluster*: the address of a dask scheduler, which takes the place of the worker processes.
        * *progress*: whether to print a line of progress on stderr; None: only in terminals and notebooks.

        Raises:
            BadInput: the configuration or an argument has errors, or a run cannot end.
        """
        shown = progress if progress is not None else sys.stderr.isatty() or "ipykernel" in sys.modules
        precision = precision_of(until_ci) if until_ci is not None else None
        experiment = self.experiment()
        directory = Path(out) if out is not None else None
        refuse_file(directory)
        how = How(seed, directory, jobs, cluster, "always" if shown else "nothing")
        ran = run_experiment(experiment, how, replications, precision)
        return Findings(experiment.title, experiment.axes, tuple(ran.all_outcomes()))


def _toml(value: object) -> str:
    """Return *value* as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(of)}" for key, of in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return str(value)


@checked
def load(source: str | Path) -> Study:
    """Return the study of the configuration *source*.

    *source*: the path of a file, or the name of a configuration that comes with wbsim (``"plug.toml"``).

    Raises:
        BadInput: there is no such configuration, or the configuration has errors.
    """
    path = Path(source)
    if not is_there(path) and is_there(config_path(path.name)):
        path = config_path(path.name)
    study = Study(path)
    study.experiment()
    return study


@checked
def experiment(text: str) -> Study:
    """Return the study of a configuration's *text* (TOML).

    Raises:
        BadInput: the configuration has errors.
    """
    study = Study(text)
    study.experiment()
    return study


@checked
def results(directory: str | Path) -> Findings:
    """Return the results that a command, or `Study.run`, has written to *directory*.

    Raises:
        BadInput: *directory* has no result, or a damaged one.
    """
    path = Path(directory)
    if not is_there(path / PLAN):
        raise bad(str(path), f"holds no result (no {PLAN} in it); make one with Study.run(out=...)")
    of = read_results(path)
    return Findings(of.title, of.axes, tuple(of.outcomes))
