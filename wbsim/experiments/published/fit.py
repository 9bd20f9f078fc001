"""The loop of all fits: run, compare with the published rows, and improve, until no constant moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, isnan, log
from pathlib import Path
from typing import Final, NamedTuple

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.experiment import load
from wbsim.experiments.config.problems import bad
from wbsim.experiments.published.figures import METRICS, published_rows
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.execute import How, Runs
from wbsim.experiments.running.jobs import Job

CLOSE_ENOUGH: Final = 0.01
"""The fit ends when every change is smaller than this share; the bound of a calibrated row is 0.05."""
MAX_ROUNDS: Final = 8


class Constant(NamedTuple):
    """A constant that is fitted.

    * ``start``: its first value.
    * ``step``: its values are multiples of this step, which is finer than the fit.
    * ``rows``: the rows that decide it.
    * ``keys``: overrides of a configuration, with ``{}`` in place of the value.
    * ``committed``: the value in the catalogue.
    """

    start: float
    step: float
    rows: tuple[str, ...]
    keys: tuple[str, ...]
    committed: float

    def rounded(self, value: float) -> float:
        """Return *value*, rounded to a multiple of the step; whole if the step is whole."""
        steps = round(value / self.step)
        return round(steps * self.step, 3) if self.step < 1 else int(steps * self.step)


Errors = Mapping[str, float]
"""The natural logarithm of the simulated value divided by the published value, by the id of the row."""


@dataclass(frozen=True)
class Calibration:
    """A fit of ``constants`` of the catalogue's ``machine`` to rows of the experiment ``config``.

    ``change`` returns, from the errors, the natural logarithm of the factor by which each quantity must
    change.  ``improved`` returns the next constants from the present ones, that change, and the outcomes.
    """

    config: Path
    machine: str
    constants: Mapping[str, Constant]
    change: Callable[[Errors], dict[str, float]]
    improved: Callable[[Mapping[str, float], Mapping[str, float], Sequence[Outcome]], dict[str, float]]

    @property
    def rows(self) -> tuple[str, ...]:
        """The ids of the rows that decide the constants, each once."""
        return tuple(dict.fromkeys(row for constant in self.constants.values() for row in constant.rows))


def each_by_its_own(
    constants: Mapping[str, float], change: Mapping[str, float], _: Sequence[Outcome]
) -> dict[str, float]:
    """Return every constant, multiplied by exp of the change of its name: the usual `Calibration.improved`.

    The outcomes are not used.  A constant may also move the row of another constant, which the next round
    corrects.
    """
    return {name: value * exp(change[name]) for name, value in constants.items()}


@dataclass(frozen=True)
class Fit:
    """The fitted and the committed ``constants``, and the relative ``errors`` that remain, by row.

    ``rounds``: the rounds that were run, at most `MAX_ROUNDS`.
    """

    constants: dict[str, float]
    committed: dict[str, float]
    errors: dict[str, float]
    rounds: int

    @property
    def agrees(self) -> bool:
        """True if each fitted constant is within `CLOSE_ENOUGH` of the committed one.

        The fit ends when every change is smaller than `CLOSE_ENOUGH`.  So two correct fits with different
        starts may end that far apart: P13's writer_scale is 2.06 from one start and 2.07 from another.
        """
        return all(
            abs(value / self.committed[name] - 1) <= CLOSE_ENOUGH for name, value in self.constants.items()
        )

    def document(self) -> dict[str, object]:
        """Return all fields and ``agrees``, for ``--json``; the errors are relative: 0.05 for 5 %."""
        return {**asdict(self), "agrees": self.agrees}


def fit(calibration: Calibration, how: How, report: Callable[[str], None]) -> Fit:
    """Fit the constants of *calibration* in at most `MAX_ROUNDS` rounds of simulation; return the result.

    *report* is called with a line of text about each round.  *how* has the settings of the runs, such as the
    directory that keeps them.  If the last round does not end the fit, the constants are those for a next
    round; the errors are those of the last.

    Raises:
        BadInput: the directory cannot be written, or a run cannot end or lacks a figure.
        LawBroken: a run broke a law of the model.
        RuntimeError: a run met a fault of wbsim.
    """
    runs = Runs(how, f"calibration with {calibration.config.name}", shared=True)
    values = {name: constant.start for name, constant in calibration.constants.items()}
    for number in range(1, MAX_ROUNDS + 1):
        values = {name: calibration.constants[name].rounded(value) for name, value in values.items()}
        overrides = [
            key.format(values[name])
            for name, constant in calibration.constants.items()
            for key in constant.keys
        ]
        experiment = load(calibration.config, overrides)
        cases = [case for case in experiment.cases if {*calibration.rows} & {*case.rows}]
        jobs = [Job(case, how.seed, dice) for case in cases for dice in range(experiment.replications)]
        outcomes = runs.run(jobs).all_outcomes()
        errors = log_errors(cases, outcomes)
        change = calibration.change(errors)
        percents = {name: f"{100 * value:+.1f} %" for name, value in change.items()}
        report(f"round {number}: {_text(values)}; wanted change {_text(percents)}")
        if max(map(abs, change.values())) < CLOSE_ENOUGH:
            break
        values = calibration.improved(values, change, outcomes)
    committed = {name: constant.committed for name, constant in calibration.constants.items()}
    return Fit(values, committed, {row: exp(errors[row]) - 1 for row in calibration.rows}, number)


def machine_file(calibration: Calibration, result: Fit, command: str) -> str:
    """Return the text of a machine file (TOML) with the constants of *result*; each names its deciding rows.

    *command* is written as the source of each constant.
    """
    lines = [f'like = "{calibration.machine}"']
    for name, constant in calibration.constants.items():
        for key in constant.keys:
            path, _, value = key.format(result.constants[name]).partition("=")
            rows = ", ".join(f'"{row}"' for row in constant.rows)
            lines.append(
                f'{path.removeprefix("machine.")} = {{ value = {value}, origin = "calibrated",'
                f' targets = [{rows}], source = "{command}" }}'
            )
    return "\n".join([*lines, ""])


def log_errors(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return the natural logarithm of simulated / published for each row of *cases*, by the id of the row.

    Each is the mean over the runs of its case in *outcomes*.  Rows without a published value are left out.

    Raises:
        BadInput: a figure is unknown in a run, so no constant can be fitted to its row.
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


def _text(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
