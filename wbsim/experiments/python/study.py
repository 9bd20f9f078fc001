"""An experiment in Python: loaded, changed, run."""

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
    """An experiment, with what was changed of it; nothing is run until it is asked to.

    ``source``: the path of its configuration, or its text; ``changes``: overrides, as ``--set`` takes them;
    ``only``: its one variant that is run; ``lists``: what is swept, as ``wbsim sweep --set`` takes it.
    """

    source: Path | str
    changes: tuple[str, ...] = ()
    only: str | None = None
    lists: tuple[str, ...] = ()
    together: bool = False
    samples: int | None = None

    @checked
    def set(self, changes: Mapping[str, object]) -> Study:
        """The same with other values of these keys: numbers, texts, quantities (``"4 GiB"``), factors
        (``"x2"``).
        """
        more = tuple(f"{key}={_toml(value)}" for key, value in changes.items())
        return replace(self, changes=(*self.changes, *more))

    @checked
    def variant(self, name: str) -> Study:
        """The same of one variant alone."""
        return replace(self, only=name)

    @checked
    def vary(
        self, values: Mapping[str, object], *, together: bool = False, samples: Count | None = None
    ) -> Study:
        """The same at these *values* of each key: each with each of the others or, *together*, the first
        ones, the second ones and so on; with *samples*, so many points of a Latin hypercube between two ends
        of each.
        """
        join = ".." if samples is not None else ","
        lists = tuple(f"{key}={join.join(map(_toml, listed(key, of)))}" for key, of in values.items())
        return replace(self, lists=(*self.lists, *lists), together=together, samples=samples)

    def experiment(self) -> Experiment:
        """Its cases, validated.

        Raises:
            BadInput: all that is wrong with it, each with its place and its remedy.
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
        """Simulate every case, on all processors or so many *jobs* at once, or on the dask *cluster* at an
        address.

        *replications*: how often, each time with other random numbers (as the configuration says, if it is
        not given here); *until_ci*: more of them until a figure is so precise (``"write_iops=2%"``); *out*: a
        directory in which results are kept, and from which those that are there are taken; *progress*: a line
        on stderr
        (by default in terminals and notebooks).

        Raises:
            BadInput: all that is wrong with it; or a run that cannot end.
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
    """*value* as a configuration has it."""
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
    """The experiment of a configuration: its path, or the name of one that comes with wbsim
    (``"plug.toml"``).

    Raises:
        BadInput: there is none; all that is wrong with it.
    """
    path = Path(source)
    if not is_there(path) and is_there(config_path(path.name)):
        path = config_path(path.name)
    study = Study(path)
    study.experiment()
    return study


@checked
def experiment(text: str) -> Study:
    """The experiment of a configuration's *text* (TOML).

    Raises:
        BadInput: all that is wrong with it.
    """
    study = Study(text)
    study.experiment()
    return study


@checked
def results(directory: str | Path) -> Findings:
    """What a command, or `Study.run`, has kept in *directory*.

    Raises:
        BadInput: there is no result in it.
    """
    path = Path(directory)
    if not is_there(path / PLAN):
        raise bad(str(path), f"holds no result (no {PLAN} in it); make one with Study.run(out=...)")
    of = read_results(path)
    return Findings(of.title, of.axes, tuple(of.outcomes))
