"""The assumed numbers (guesses) of a case, and the runs of the case with other values of them.

A range whose ends differ by more than a factor of `WIDE` is sampled on a logarithmic scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, log
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.filesystems import made_again
from wbsim.experiments.config.problems import bad
from wbsim.experiments.config.values import bounds
from wbsim.experiments.formats.numbers import quantity_text
from wbsim.experiments.results.figures import FIGURES
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.execute import How, Runs
from wbsim.experiments.running.jobs import Job
from wbsim.experiments.why.refusals import Refusal, Refused, Values, refusals_of
from wbsim.experiments.why.writeback import nothing_written_back, why_nothing
from wbsim.models.scenario import Scenario
from wbsim.sim.param import Given, Inputs, Number, Origin, Spec

WIDE: Final = 30
_HALVINGS: Final = 12
"""The steps of the search for the allowed value next to a refused draw; within 0.03 % of the range."""


class Guess(NamedTuple):
    """An assumed number and the ends of its range, in *unit*: ns, B or B/s, or another unit of a spec.

    The number is a multiple of *step*, if that is not 0.
    """

    path: str
    value: float
    low: float
    high: float
    unit: str = "1"
    step: int = 0

    @property
    def range_text(self) -> str:
        """Both ends of the range with their units.

        >>> Guess("seek", 1_000_000, 500_000, 2_000_000, "ns").range_text
        '500 us .. 2 ms'
        """
        return f"{quantity_text(self.low, self.unit)} .. {quantity_text(self.high, self.unit)}"

    @property
    def logarithmic(self) -> bool:
        """True if the range is sampled on a logarithmic scale: above 0, and wider than the factor `WIDE`."""
        return self.low > 0 and self.high > WIDE * self.low

    def value_at(self, share: float) -> float | int:
        """Return the value at *share* of the range (0 to 1), in ``unit``.

        The value is whole if the usual value is whole, and then a multiple of ``step``, if that is not 0.  If
        the range has no multiple of ``step``, the value is the usual one.

        >>> Guess("chunk", 524288, 65536, 524288, step=4096).value_at(1 / 3) % 4096
        0
        """
        if self.logarithmic:
            value = exp(log(self.low) + share * (log(self.high) - log(self.low)))
        else:
            value = self.low + share * (self.high - self.low)
        value = min(max(value, self.low), self.high)  # the rounding of floats may leave the range
        if not isinstance(self.value, int):
            return value
        if self.step:
            least, most = -(-self.low // self.step), self.high // self.step
            if least > most:
                return self.value
            return int(min(max(round(value / self.step), least), most)) * self.step
        return round(value)

    def share_of(self, value: float) -> float:
        """Return the share of the range (0 to 1) at which *value* lies: the inverse of `value_at`.

        >>> Guess("cv", 0.2, 0.0, 1.0).share_of(0.25)
        0.25
        """
        if self.logarithmic:
            return log(value / self.low) / log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def distinct_ends(paths: Sequence[str]) -> list[str]:
    """Return the end of each of *paths*: its last part, or as many as distinguish it from all others.

    >>> distinct_ends(["machine.cv", "a.members[0].seek", "a.members[1].seek"])
    ['cv', 'members[0].seek', 'members[1].seek']
    """
    ends = []
    for path in paths:
        parts = path.split(".")
        count = next(
            count
            for count in range(1, len(parts) + 1)
            if sum(f".{other}".endswith("." + ".".join(parts[-count:])) for other in paths) == 1
            or count == len(parts)
        )
        ends.append(".".join(parts[-count:]))
    return ends


def guesses_of(scenario: Scenario) -> list[Guess]:
    """Return the assumed numbers of *scenario* that have a range; texts and truth values are left out."""
    return [
        Guess(
            number.path,
            number.value,
            number.provenance.low,
            number.provenance.high,
            number.unit,
            _step_of(scenario, number.path),
        )
        for number in scenario.numbers()
        if number.provenance is not None and _is_guess(number, number.provenance)
    ]


def _is_guess(number: Number, provenance: Given) -> bool:
    ends = (number.value, provenance.low, provenance.high)
    plain = all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
    return provenance.origin is Origin.ASSUMED and plain and provenance.low < provenance.high


def _parts_of(path: str) -> list[str]:
    return path.replace("[", ".").replace("]", "").split(".")


def _step_of(scenario: Scenario, path: str) -> int:
    """Return the number of which the value at *path* must be a multiple; 0 without such a rule."""
    *parts, last = _parts_of(path)
    spec: Any = scenario
    for part in parts:
        if isinstance(spec, Spec):
            spec = getattr(spec, part)
        else:
            spec = spec[int(part)] if isinstance(spec, tuple) else spec[part]
    if not isinstance(spec, Spec):  # a number in a list
        return 0
    return max(bounds([type(spec).model_fields[last]], "multiple_of"), default=0)


def with_numbers(scenario: Scenario, values: Mapping[str, object]) -> Scenario:
    """Return *scenario* with other *values*, by path; `Spec.numbers` defines the form of a path.

    *scenario* does not change.  A filesystem whose size follows its disk is made again on the changed disk.

    Raises:
        ValidationError: the model refuses the values.
    """
    inputs = scenario.inputs()
    _put(inputs, values)
    if any(path.startswith("machine.") for path in values):
        made_again(scenario, inputs)
        _put(inputs, values)
    return Scenario.model_validate(inputs)


def _put(inputs: Inputs, values: Mapping[str, object]) -> None:
    for path, value in values.items():
        *parts, last = _parts_of(path)
        node: Any = inputs
        for part in parts:
            node = node[int(part)] if isinstance(node, list) else node[part]
        entry = node[last]
        node[last] = replace(entry, value=value) if isinstance(entry, Given) else value


_KINDS: Final = {
    "input": "", "law": "a law of the model is broken: ", "error": "a fault of wbsim: ",
    "lost": "its worker was lost: ",
}  # fmt: skip


class GuessRuns:
    """The runs of one case with other numbers, for `sensitivity` and `drawn_intervals`.

    *guesses* are all guesses of the case, and *title* is that of the plan.  `figures` returns its *figure*, a
    name of `FIGURES`, and `outcomes` complete results.  A draw that a rule between keys refuses is corrected,
    and a run that the model refuses is counted with its reason (`refusals`).  ``run_count`` counts all runs,
    and ``draws`` has the corrected numbers of the last call.
    """

    def __init__(self, case: Case, figure: str, how: How, guesses: Sequence[Guess], title: str) -> None:
        self._case = case
        self._figure = FIGURES[figure]
        self._how = how
        self._guesses = guesses
        self._runs = Runs(how, title)
        self.run_count = 0
        self.failures: list[Refused] = []
        self._successes: list[Values] = []
        self.draws: list[Values] = []

    def figures(self, shares: NDArray[np.float64], guesses: Sequence[Guess]) -> NDArray[np.float64]:
        """Return the figure, in its unit, for each row of *shares*; nan for a refused or failed run.

        A row has a share for each of *guesses*, from 0 (the low end of the range) to 1.  Other guesses have
        their usual values.

        Raises:
            BadInput: as `Runs.run` raises it.
        """
        outcomes = self.outcomes(shares, guesses)
        return np.array([np.nan if outcome is None else self._figure.whole(outcome) for outcome in outcomes])

    def outcomes(
        self, shares: NDArray[np.float64], guesses: Sequence[Guess], *, equal_seeds: bool = True
    ) -> list[Outcome | None]:
        """Return the outcome for each row of *shares*; None for a refused or failed run.

        A row has a share for each of *guesses*, from 0 (the low end of the range) to 1.  With *equal_seeds*
        all rows have the random numbers of replication 0; without, row n has those of replication n.

        Raises:
            BadInput: as `Runs.run` raises it.
        """
        jobs: list[tuple[Values, Job]] = []
        for number, row in enumerate(shares.tolist()):
            draw: Values = {
                guess.path: guess.value_at(share) for guess, share in zip(guesses, row, strict=True)
            }
            values, scenario = self._correct(draw, guesses)
            replication = 0 if equal_seeds else number
            jobs.append((values, Job(replace(self._case, scenario=scenario), self._how.seed, replication)))
        self.draws = [values for values, _ in jobs]
        results = self._runs.run([job for _, job in jobs]).results
        for (values, _), result in zip(jobs, results, strict=True):
            if isinstance(result, Outcome):
                self._successes.append(values)
            else:
                self.failures.append(Refused(values, _KINDS[result.kind] + result.message))
        self.run_count += len(jobs)
        return [result if isinstance(result, Outcome) else None for result in results]

    def _correct(self, draw: Values, guesses: Sequence[Guess]) -> tuple[Values, Scenario]:
        """Return *draw* with the values that the configuration allows, and the scenario with them.

        A rule between several keys may refuse a draw.  Then one number after another goes back to its usual
        value until the rest is allowed.  The last of them is moved out again, as far as the rule allows.
        """
        values, number = dict(draw), 0
        if (scenario := self._scenario(values)) is not None:
            return values, scenario
        lifts = (guess for guess in guesses if self._scenario({**draw, guess.path: guess.value}) is not None)
        lift = next(lifts, None)
        back = list(guesses) if lift is None else [lift]
        while scenario is None:
            guess = back[number]
            values[guess.path], number = guess.value, number + 1
            scenario = self._scenario(values)
        inner, outer = guess.share_of(guess.value), guess.share_of(draw[guess.path])
        for _ in range(_HALVINGS):
            middle = (inner + outer) / 2
            trial = {**values, guess.path: guess.value_at(middle)}
            if (trial_scenario := self._scenario(trial)) is not None:
                inner, values, scenario = middle, trial, trial_scenario
            else:
                outer = middle
        return values, scenario

    def _scenario(self, values: Values) -> Scenario | None:
        """Return the scenario with other *values*; None if the model refuses them."""
        try:
            return with_numbers(self._case.scenario, values)
        except ValidationError:
            return None

    def refusals(self) -> list[Refusal]:
        """Return the reasons of the runs refused so far, the most frequent first, with their causes."""
        usual = {guess.path: guess.value for guess in self._guesses}
        return refusals_of(self.failures, self._successes, usual)

    def value(self) -> float:
        """Return the figure, in its unit, with all guesses at their usual values; nan if it is unknown.

        Raises:
            BadInput: nothing was written back until the time of the figure, or the run cannot end.
            LawBroken: as `usual_outcome` raises it.
            RuntimeError: as `usual_outcome` raises it.
        """
        outcome = self.usual_outcome()
        if nothing_written_back(outcome, until_end=self._figure.until_end):
            raise bad(f"sensitivity of {self._case.label}", why_nothing(outcome))
        return self._figure.whole(outcome)

    def usual_outcome(self) -> Outcome:
        """Return the outcome with all guesses at their usual values; the run counts in ``run_count``.

        Raises:
            BadInput: the run cannot end.
            LawBroken: the run broke a law of the model.
            RuntimeError: the run met a fault of wbsim.
        """
        (outcome,) = self._runs.run([Job(self._case, self._how.seed)]).all_outcomes()
        self.run_count += 1
        return outcome
