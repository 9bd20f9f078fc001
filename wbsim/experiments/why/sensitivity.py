"""`wbsim sensitivity`: how much the assumed numbers (guesses) could change a figure.

Every assumed number of a case is varied within its range, in three steps:

1. Morris (elementary effects) finds the numbers that matter.  ``mu*`` is the mean absolute effect of moving
   one number through its range.  ``sigma`` shows how much this effect depends on the other numbers.
2. One at a time: the figure at both ends of the range of the ten numbers that matter most.  The tornado shows
   these figures.
3. Sobol: the share of the variance that each of the few largest guesses explains alone (S1) and together with
   others (ST).  The middle 95 % of these runs are the interval of the figure.

SALib makes the samples.  Refused runs are listed by reason (`experiments.why.refusals`).  Morris leaves
them out, and Sobol gives them the mean figure of the other runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, quantiles, stdev
from typing import Final, NamedTuple

import numpy as np

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.problems import bad
from wbsim.experiments.formats.numbers import quantity_text
from wbsim.experiments.formats.table import column_texts, figure_text, table, wrapped
from wbsim.experiments.results.figures import FIGURES, number_or_nan
from wbsim.experiments.running.execute import How
from wbsim.experiments.running.jobs import MOST_RUNS
from wbsim.experiments.why.guesses import Guess, GuessRuns, distinct_ends, guesses_of
from wbsim.experiments.why.refusals import Refusal

LEVELS: Final = 4
TORNADO: Final = 10


class Effect(NamedTuple):
    """The effect of one guess on the figure.

    * ``mu_star`` and ``sigma``: the results of Morris, in the unit of the figure.
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

    def __str__(self) -> str:
        return self.text()

    def document(self) -> dict[str, object]:
        """Return the document of ``--json``; figures are in their units, and shares from 0 to 1.

        The keys are the fields, but ``refused`` is the number of refused runs.  ``refusals`` has the dicts of
        `Refusal.document`.  ``effects`` has a dict with the fields of `Effect` for each guess, which is a
        dict with the fields of `Guess`.
        """
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
        """Return the table of the largest effects, the answer, and a line for each reason of a refusal."""
        effects = self.effects[:TORNADO]
        sobol = [[effect.first for effect in effects], [effect.total for effect in effects]]
        if all(share is None for shares in sobol for share in shares):
            sobol = []
        columns = [
            distinct_ends([effect.guess.path for effect in effects]),
            [quantity_text(effect.guess.value, effect.guess.unit) for effect in effects],
            [effect.guess.range_text for effect in effects],
            [_percent(effect.mu_star, self.value) for effect in effects],
            [_percent(effect.sigma, self.value) for effect in effects],
            column_texts([number_or_nan(effect.low) for effect in effects]),
            column_texts([number_or_nan(effect.high) for effect in effects]),
            *([figure_text(number_or_nan(share), 2) for share in shares] for shares in sobol),
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
        counts += (
            "; wbsim show prints the complete keys, and wbsim run --guesses 20 an interval over all of them"
        )
        reasons = [
            "\n".join(["refused runs, by reason:", *(f"  {refusal.text()}" for refusal in self.refusals)])
        ]
        return "\n\n".join(
            [
                self.title,
                table(header[: len(columns)], rows),
                f"{wrapped(answer)}\n{wrapped(counts)}",
                *(reasons if self.refusals else []),
            ]
        )


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / abs(whole):.1f}" if whole else "-"


def sensitivity(case: Case, figure: str, how: How, trajectories: int, most: int, sobol: int) -> Sensitivity:
    """Return how much the assumed numbers of *case* can change its *figure*, a name of `FIGURES`.

    *how*: the settings of the runs.  Morris runs *trajectories* trajectories over all numbers.  Then Sobol
    runs *sobol* base samples (a power of two; 0: no Sobol) over the *most* numbers with the largest effects.
    Equal arguments give equal results.

    Raises:
        BadInput: an argument is invalid, nothing can be varied, the model refuses too many runs, or a result
            cannot be written.  Or the run with the usual values cannot end, or writes nothing back.
        LawBroken: the run with the usual values broke a law of the model.
        RuntimeError: the run with the usual values met a fault of wbsim.
    """
    if figure not in FIGURES:
        raise bad("--figure", f"is {figure!r}; use one of {', '.join(FIGURES)}")
    if trajectories < 2:
        raise bad(
            "--trajectories",
            f"is {trajectories}; give at least 2, because one trajectory cannot show interactions",
        )
    if sobol & (sobol - 1):
        message = f"{sobol} is not a power of two; give 16, 32 or 64, or 0 to leave the method out"
        raise bad("--sobol", message)
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
    study = GuessRuns(case, figure, how, guesses, f"Sensitivity of {figure}: {case.label}")
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
    """Return the title of the table and of the picture: the name *figure*, and the label of the *case*."""
    return f"Effect of the assumed numbers on {figure} of {case}"


def _problem(guesses: Sequence[Guess]) -> dict[str, object]:
    return {
        "num_vars": len(guesses),
        "names": [guess.path for guess in guesses],
        "bounds": [[0.0, 1.0]] * len(guesses),
    }


def _morris(study: GuessRuns, guesses: Sequence[Guess], trajectories: int) -> list[Effect]:
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


def _ends(study: GuessRuns, effects: Sequence[Effect]) -> list[Effect]:
    """Return *effects* with the figure at both ends of each range; all other numbers are usual."""
    results = []
    for effect in effects:
        low, high = study.figures(np.array([[0.0], [1.0]]), [effect.guess]).tolist()
        results.append(effect._replace(low=None if low != low else low, high=None if high != high else high))
    return results


def sobol_effects(
    study: GuessRuns, effects: Sequence[Effect], most: int, samples: int
) -> tuple[list[Effect], tuple[float, float]]:
    """Return *effects*, the first *most* with their shares of the variance, and the figure's interval.

    The interval has the middle 95 % of the runs of *study*, in the figure's unit.  *effects* are sorted, the
    largest first.  *samples*: the base samples, a power of two; there are ``most + 2`` runs for each.

    Raises:
        BadInput: the model refuses all runs.
    """
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
