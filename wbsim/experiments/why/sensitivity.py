"""`wbsim sensitivity`: how much the assumed numbers (guesses) could change a figure.

Every assumed number of a case is varied within its range, in three steps:

1. Morris (elementary effects) finds the numbers that matter.  ``mu*`` is the mean absolute effect of moving
   one number through its range.  ``sigma`` shows how much this effect depends on the other numbers.
2. One at a time: the figure at both ends of the range of the ten numbers that matter most.  The tornado shows
   these figures.
3. Sobol: the share of the variance that each of the few largest guesses explains alone (S1) and together with
   others (ST).  The middle 95 % of these runs are the interval of the figure.

SALib makes the samples.  A range whose ends differ by more than a factor of `WIDE` is sampled on a
logarithmic scale.  Refused runs are listed by reason (`experiments.why.refusals`).  Morris leaves them out,
and Sobol gives them the mean figure of the other runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from statistics import fmean, quantiles, stdev
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.filesystems import made_again
from wbsim.experiments.config.problems import bad
from wbsim.experiments.config.values import amount, bounds
from wbsim.experiments.formats.table import column_texts, figure_text, table
from wbsim.experiments.results.figures import FIGURES, number_or_nan
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.execute import How, Runs
from wbsim.experiments.running.jobs import MOST_RUNS, Job
from wbsim.experiments.why.refusals import Refusal, Refused, Values, refusals_of
from wbsim.experiments.why.writeback import nothing_written_back, why_nothing
from wbsim.models.scenario import Scenario
from wbsim.sim.param import Given, Inputs, Number, Origin, Spec

WIDE: Final = 30
LEVELS: Final = 4
TORNADO: Final = 10
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
        """Return both ends of the range with their units.

        >>> Guess("seek", 1_000_000, 500_000, 2_000_000, "ns").range_text
        '500 us .. 2 ms'
        """
        return f"{amount(self.low, self.unit)} .. {amount(self.high, self.unit)}"

    @property
    def logarithmic(self) -> bool:
        """Return whether the range is sampled on a logarithmic scale."""
        return self.low > 0 and self.high > WIDE * self.low

    def value_at(self, share: float) -> float | int:
        """Return the value at *share* of the range (0 to 1), which obeys the rule of the key.

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
        """Return the share of the range at which *value* lies; see `value_at`."""
        if self.logarithmic:
            return log(value / self.low) / log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


class Effect(NamedTuple):
    """The effect of one guess on the figure.

    * ``mu_star`` and ``sigma``: the results of Morris.
    * ``low`` and ``high``: the figure at the ends of the range; None: not run, or the run has no figure.
    * ``first`` and ``total``: Sobol's shares of the variance (S1 and ST); None: not among the few.
    """

    guess: Guess
    mu_star: float
    sigma: float
    low: float | None = None
    high: float | None = None
    first: float | None = None
    total: float | None = None


@dataclass(frozen=True)
class Sensitivity:
    """The effects of all guesses on a figure, the largest first.

    * ``value``: the figure with all guesses at their usual values.
    * ``interval``: the middle 95 % of Sobol's runs, or None without Sobol.
    * ``runs`` and ``refusal_count``: the number of all runs and of refused runs.
    """

    title: str
    figure: str
    value: float
    effects: list[Effect]
    interval: tuple[float, float] | None
    runs: int
    refusal_count: int
    refusals: list[Refusal] = field(default_factory=list)

    def document(self) -> dict[str, object]:
        """Return the JSON document of ``--json``."""
        effects = [{**effect._asdict(), "guess": effect.guess._asdict()} for effect in self.effects]
        summary = {"title": self.title, "figure": self.figure, "value": self.value, "interval": self.interval}
        return {
            **summary,
            "runs": self.runs,
            "refused": self.refusal_count,
            "refusals": [refusal.document() for refusal in self.refusals],
            "effects": effects,
        }

    def text(self) -> str:
        """Return the table, the answer, and a line for each reason of a refusal."""
        shown = self.effects[:TORNADO]
        columns = [
            [effect.guess.path for effect in shown],
            [amount(effect.guess.value, effect.guess.unit) for effect in shown],
            [effect.guess.range_text for effect in shown],
            [_percent(effect.mu_star, self.value) for effect in shown],
            [_percent(effect.sigma, self.value) for effect in shown],
            column_texts([number_or_nan(effect.low) for effect in shown]),
            column_texts([number_or_nan(effect.high) for effect in shown]),
            [figure_text(number_or_nan(effect.first), 2) for effect in shown],
            [figure_text(number_or_nan(effect.total), 2) for effect in shown],
        ]
        rows = list(zip(*columns, strict=True))
        header = ("assumed number", "value", "range", "mu* %", "sigma %", "at low", "at high", "S1", "ST")
        unit = FIGURES[self.figure].unit
        answer = f"{self.figure} is {figure_text(self.value)} {unit}"
        if self.interval is not None:
            low, high = self.interval
            interval = f"{figure_text(low)} .. {figure_text(high)}"
            answer += f"; within the assumed ranges, {interval} (95 % of Sobol's runs)"
        quiet = sum(guess_effect.mu_star < 0.01 * abs(self.value) for guess_effect in self.effects)
        counts = f"{len(self.effects)} assumed numbers, of which {quiet} change it by less than 1 %;"
        counts += f" {self.runs} runs"
        if self.refusal_count:
            counts += f", {self.refusal_count} of them refused"
        reasons = [
            "\n".join(["refused runs, by reason:", *(f"  {refusal.text()}" for refusal in self.refusals)])
        ]
        return "\n\n".join(
            [self.title, table(header, rows), f"{answer}\n{counts}", *(reasons if self.refusals else [])]
        )


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / abs(whole):.1f}" if whole else "-"


def guesses_of(scenario: Scenario) -> list[Guess]:
    """Return the assumed numbers of *scenario* that have a range."""
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

    A filesystem whose size follows its disk is made again on the changed disk.

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


class _Study:
    """The runs of one case with other numbers."""

    def __init__(self, case: Case, figure: str, how: How, guesses: Sequence[Guess]) -> None:
        self._case = case
        self._figure = FIGURES[figure]
        self._how = how
        self._guesses = guesses
        self._runs = Runs(how, f"Sensitivity of {figure}: {case.label}")
        self.run_count = 0
        self.failures: list[Refused] = []
        self._successes: list[Values] = []
        self.draws: list[Values] = []

    def figures(self, shares: NDArray[np.float64], guesses: Sequence[Guess]) -> NDArray[np.float64]:
        """Return the figure at each row of *shares*, of *guesses*; nan for a refused or failed run."""
        jobs: list[tuple[Values, Job]] = []
        for row in shares.tolist():
            draw: Values = {
                guess.path: guess.value_at(share) for guess, share in zip(guesses, row, strict=True)
            }
            values, scenario = self._correct(draw, guesses)
            jobs.append((values, Job(replace(self._case, scenario=scenario), self._how.seed)))
        self.draws = [values for values, _ in jobs]
        results = self._runs.run([job for _, job in jobs]).results
        figures = []
        for (values, _), result in zip(jobs, results, strict=True):
            if isinstance(result, Outcome):
                self._successes.append(values)
            else:
                self.failures.append(Refused(values, _KINDS[result.kind] + result.message))
            figures.append(self._figure.whole(result) if isinstance(result, Outcome) else np.nan)
        self.run_count += len(jobs)
        return np.array(figures)

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
        """Return the reasons of the runs refused so far, with their causes."""
        usual = {guess.path: guess.value for guess in self._guesses}
        return refusals_of(self.failures, self._successes, usual)

    def value(self) -> float:
        """Return the figure with all guesses at their usual values.

        Raises:
            BadInput: nothing was written back until the time of the figure.
        """
        (outcome,) = self._runs.run([Job(self._case, self._how.seed)]).all_outcomes()
        if nothing_written_back(outcome, until_end=self._figure.until_end):
            raise bad(f"sensitivity of {self._case.label}", why_nothing(outcome))
        self.run_count += 1
        return self._figure.whole(outcome)


def sensitivity(case: Case, figure: str, how: How, trajectories: int, most: int, sobol: int) -> Sensitivity:
    """Return how much the assumed numbers of *case* can change its *figure*.

    Morris runs *trajectories* trajectories over all numbers.  Then Sobol runs *sobol* base samples (a power
    of two; 0: no Sobol) over the *most* numbers with the largest effects.

    Raises:
        BadInput: an argument is invalid, nothing can be varied, the model refuses too many runs, or a result
            cannot be written.
    """
    if figure not in FIGURES:
        raise bad("--figure", f"is {figure!r}; use one of {', '.join(FIGURES)}")
    if trajectories < 2:
        raise bad(
            "--trajectories",
            f"is {trajectories}; give at least 2, because one trajectory cannot show interactions",
        )
    guesses = guesses_of(case.scenario)
    if not guesses:
        raise bad(
            "sensitivity",
            "the case has no assumed number with a range; state one, as { assumed = 5, low = 1, high = 9 }",
        )
    if (many := trajectories * (len(guesses) + 1) + sobol * (most + 2)) > MOST_RUNS:
        raise bad(
            "--trajectories",
            f"results in {many} runs; give fewer, or a smaller --sobol, for at most {MOST_RUNS} runs",
        )
    study = _Study(case, figure, how, guesses)
    value = study.value()
    if value != value:
        raise bad("--figure", f"the case has no {figure}; give a figure that `wbsim run` prints for it")
    effects = _morris(study, guesses, trajectories)
    effects = [*_ends(study, effects[:TORNADO]), *effects[TORNADO:]]
    interval = None
    if sobol:
        effects, interval = sobol_effects(study, effects, min(most, len(effects)), sobol)
    counts = study.run_count, len(study.failures)
    return Sensitivity(
        title_of(figure, case.label), figure, value, effects, interval, *counts, study.refusals()
    )


def title_of(figure: str, case: str) -> str:
    """Return the title of the table and of the picture: the *figure* of the *case*."""
    return f"Effect of the assumed numbers on {figure} of {case}"


def _problem(guesses: Sequence[Guess]) -> dict[str, object]:
    return {
        "num_vars": len(guesses),
        "names": [guess.path for guess in guesses],
        "bounds": [[0.0, 1.0]] * len(guesses),
    }


def _morris(study: _Study, guesses: Sequence[Guess], trajectories: int) -> list[Effect]:
    """Return the effect of every guess by Morris, the largest first."""
    from SALib.sample import morris as sampling

    shares = sampling.sample(_problem(guesses), trajectories, num_levels=LEVELS, seed=0)
    figures = study.figures(shares, guesses)
    changes: list[list[float]] = [[] for _ in guesses]
    for place in range(len(shares) - 1):
        start, end = study.draws[place], study.draws[place + 1]
        indices = [
            number for number, candidate in enumerate(guesses) if start[candidate.path] != end[candidate.path]
        ]
        if len(indices) == 1:  # a rule between keys may have moved another number, too
            guess = guesses[indices[0]]
            step = guess.share_of(end[guess.path]) - guess.share_of(start[guess.path])
            effect = float((figures[place + 1] - figures[place]) / step)
            changes[indices[0]] += [effect] if effect == effect else []
    if not any(changes):
        raise bad("sensitivity", "the model refuses a run of every pair that is compared; narrow the ranges")
    effects = [
        Effect(guess, fmean(map(abs, values)) if values else 0.0, stdev(values) if len(values) > 1 else 0.0)
        for guess, values in zip(guesses, changes, strict=True)
    ]
    return sorted(effects, key=lambda result: -result.mu_star)


def _ends(study: _Study, effects: Sequence[Effect]) -> list[Effect]:
    """Return *effects* with the figure at both ends of each range; all other numbers are usual."""
    results = []
    for effect in effects:
        low, high = study.figures(np.array([[0.0], [1.0]]), [effect.guess]).tolist()
        results.append(effect._replace(low=None if low != low else low, high=None if high != high else high))
    return results


def sobol_effects(
    study: _Study, effects: Sequence[Effect], most: int, samples: int
) -> tuple[list[Effect], tuple[float, float]]:
    """Return *effects*, the first *most* with their shares of the variance, and the figure's interval."""
    from SALib.analyze import sobol as analysis
    from SALib.sample import sobol as sampling

    few = [effect.guess for effect in effects[:most]]
    problem = _problem(few)
    figures = study.figures(sampling.sample(problem, samples, calc_second_order=False, seed=0), few)
    if np.isnan(figures).all():
        raise bad(
            "--sobol", "the model refuses all runs of Sobol's method; narrow the ranges, or give --sobol 0"
        )
    filled = np.where(np.isnan(figures), np.nanmean(figures), figures)
    if np.ptp(filled):
        indices = analysis.analyze(problem, filled, calc_second_order=False, seed=0)
    else:  # a variance of 0 has no shares
        indices = {"S1": np.zeros(len(few)), "ST": np.zeros(len(few))}
    shares = zip(effects, indices["S1"], indices["ST"], strict=False)
    leaders = [effect._replace(first=float(first), total=float(total)) for effect, first, total in shares]
    cuts = quantiles(filled.tolist(), n=40, method="inclusive")  # between the smallest and the largest figure
    return [*leaders, *effects[most:]], (cuts[0], cuts[-1])
