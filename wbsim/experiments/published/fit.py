"""The one loop that all fits share: run, compare with the published rows, improve, until nothing moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isnan, log
from pathlib import Path
from typing import Final, NamedTuple

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.experiment import load
from wbsim.experiments.config.problems import bad
from wbsim.experiments.published.figures import METRICS, published_rows
from wbsim.experiments.running.execute import How, Runs
from wbsim.experiments.running.jobs import Job
from wbsim.experiments.running.outcome import Outcome

CLOSE_ENOUGH: Final = 0.01
"""The fit ends when nothing is to move by more than this; the tolerance of the claims is 0.05."""
MAX_ROUNDS: Final = 8


class Constant(NamedTuple):
    """One that is fitted: from *start* on, in whole *steps*, which are finer than the fit can tell; where it
    stands in a configuration, as overrides with ``{}`` for its value; and what is committed.
    """

    start: float
    step: float
    keys: tuple[str, ...]
    committed: float

    def rounded(self, value: float) -> float:
        """To whole steps."""
        steps = round(value / self.step)
        return round(steps * self.step, 3) if self.step < 1 else int(steps * self.step)


Errors = Mapping[str, float]
"""The logarithm of simulated over published, by row."""


@dataclass(frozen=True)
class Calibration:
    """A fit: of which *constants*, to which *rows* of an experiment.

    ``change`` says from the errors by which logarithm each thing is to move, by name; ``improved`` gives the
    next constants from these, that change and what was run.
    """

    config: Path
    constants: Mapping[str, Constant]
    rows: tuple[str, ...]
    change: Callable[[Errors], dict[str, float]]
    improved: Callable[[Mapping[str, float], Mapping[str, float], Sequence[Outcome]], dict[str, float]]


def each_by_its_own(
    constants: Mapping[str, float], change: Mapping[str, float], _: Sequence[Outcome]
) -> dict[str, float]:
    """Every constant by the change of its name: what one moves of another's row, the next round mends."""
    return {name: value * exp(change[name]) for name, value in constants.items()}


@dataclass(frozen=True)
class Fit:
    """The fitted constants beside the committed ones, and the relative errors that remain."""

    fitted: dict[str, float]
    committed: dict[str, float]
    errors: dict[str, float]
    rounds: int

    @property
    def agrees(self) -> bool:
        """Return whether each fitted constant is within `CLOSE_ENOUGH` of the committed one.

        The fit ends when nothing is to move by more than `CLOSE_ENOUGH`.  So two fits from different starts,
        both right, may end that far apart: P13's writer_scale is 2.06 from one start and 2.07 from another.
        """
        return all(
            abs(value / self.committed[name] - 1) <= CLOSE_ENOUGH for name, value in self.fitted.items()
        )


def fit(of: Calibration, how: How, report: Callable[[str], None]) -> Fit:
    """Make the fit, and *report* of each round."""
    runs = Runs(how, f"calibration with {of.config.name}")
    values = {name: constant.start for name, constant in of.constants.items()}
    for number in range(1, MAX_ROUNDS + 1):
        values = {name: of.constants[name].rounded(value) for name, value in values.items()}
        overrides = [key.format(values[name]) for name, of_it in of.constants.items() for key in of_it.keys]
        experiment = load(of.config, overrides)
        cases = [case for case in experiment.cases if {*of.rows} & {*case.rows}]
        jobs = [Job(case, how.seed, dice) for case in cases for dice in range(experiment.replications)]
        outcomes = runs.run(jobs).all_outcomes()
        errors = log_errors(cases, outcomes)
        change = of.change(errors)
        wanted = {name: f"{100 * value:+.1f} %" for name, value in change.items()}
        report(f"round {number}: {_shown(values)}; to change by {_shown(wanted)}")
        if max(map(abs, change.values())) < CLOSE_ENOUGH:
            break
        values = of.improved(values, change, outcomes)
    committed = {name: constant.committed for name, constant in of.constants.items()}
    return Fit(values, committed, {row: exp(errors[row]) - 1 for row in of.rows}, number)


def log_errors(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return the errors of the rows that *cases* stand for, each the geometric mean over the runs of a case.

    Raises:
        BadInput: a figure is unknown in a run, so that nothing can be fitted to its row.
    """
    errors = {}
    for row in published_rows():
        case = next((case for case in cases if row.id in case.rows), None)
        if case is not None and row.value is not None:
            metric = METRICS[row.metric, row.unit]
            runs = [metric.whole(outcome) for outcome in outcomes if outcome.variant == case.variant]
            if any(map(isnan, runs)):
                raise bad(f"row {row.id}", f"{row.metric} is unknown in a run; fit with a longer run")
            errors[row.id] = sum(log(value / row.value) for value in runs) / len(runs)
    return errors


def _shown(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
