"""Intervals of figures that include the assumed numbers: each run draws all of them, and other seeds.

The interval over replications shows the scatter of the random numbers only, so it is often far narrower than
the error of the model.  Here every run has its own point of a Latin hypercube over the ranges of all guesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median, quantiles
from typing import Final, NamedTuple

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.problems import bad
from wbsim.experiments.formats.table import column_texts, table
from wbsim.experiments.results.figures import FIGURES
from wbsim.experiments.running.execute import How
from wbsim.experiments.why.guesses import GuessRuns, guesses_of

FEWEST: Final = 5
"""The smallest number of draws from which an interval is computed."""
DRAWN: Final = ("wall_time", "on_disk_time", "write_iops", "write_bandwidth", "file_rate", "file_bandwidth")
"""The figures of the table, each if the case has it."""


class Drawn(NamedTuple):
    """A figure over the draws, in its unit: the median, and the middle 95 %.

    ``usual``: the figure with all guesses at their usual values.
    """

    figure: str
    usual: float
    middle: float
    low: float
    high: float


class Draws(NamedTuple):
    """The drawn figures of the case *label*; ``guesses``: so many assumed numbers were drawn.

    ``runs`` of the draws ended, and the model refuses ``refusals`` of them.
    """

    label: str
    guesses: int
    runs: int
    refusals: int
    figures: list[Drawn]

    def text(self) -> str:
        """Return the table of the figures with their intervals, below a line that says what was drawn."""
        rows = [
            (f"{entry.figure} {FIGURES[entry.figure].unit}", *column_texts(entry[1:]))
            for entry in self.figures
        ]
        rest = f", and {self.refusals} more were refused" if self.refusals else ""
        title = (
            f"{self.label}: {self.guesses} assumed numbers drawn from their ranges, {self.runs} runs{rest}"
        )
        return f"{title}\n{table(('figure', 'usual', 'median', '2.5 %', '97.5 %'), rows)}"

    def document(self) -> dict[str, object]:
        """Return all fields by their names, for ``--json``; a figure is a dict with the fields of `Drawn`."""
        return {**self._asdict(), "figures": [entry._asdict() for entry in self.figures]}


def drawn_intervals(case: Case, more: Sequence[str], how: How, draws: int) -> Draws:
    """Run *case* *draws* times with drawn guesses, and return the intervals of its figures.

    The figures are those of `DRAWN`, and those of `FIGURES` that *more* names.  A figure that is 0 in all
    draws, or known in fewer than two, is left out.  *how*: the settings of the runs.  The case also runs once
    with the usual values.  Equal arguments draw equal values.  ``wbsim run --guesses`` calls this.

    Raises:
        BadInput: there are fewer than `FEWEST` draws, nothing can be drawn, or fewer than two draws end.  Or
            the run with the usual values cannot end.
        LawBroken: the run with the usual values broke a law of the model.
        RuntimeError: the run with the usual values met a fault of wbsim.
    """
    from scipy.stats.qmc import LatinHypercube

    if draws < FEWEST:
        raise bad("--guesses", f"is {draws}; an interval needs at least {FEWEST} draws")
    guesses = guesses_of(case.scenario)
    if not guesses:
        raise bad("--guesses", "the case has no assumed number with a range, so there is nothing to draw")
    study = GuessRuns(case, "wall_time", how, guesses, f"Drawn guesses: {case.label}")
    usual = study.usual_outcome()
    shares = LatinHypercube(d=len(guesses), seed=0).random(draws)
    outcomes = [run for run in study.outcomes(shares, guesses, equal_seeds=False) if run is not None]
    if len(outcomes) < 2:
        raise bad("--guesses", "the model refuses the draws; wbsim sensitivity lists the reasons")
    figures = []
    for name in dict.fromkeys([*DRAWN, *more]):
        values = [value for run in outcomes if (value := FIGURES[name].whole(run)) == value]
        if len(values) > 1 and any(values):
            cuts = quantiles(values, n=40, method="inclusive")
            figures.append(Drawn(name, FIGURES[name].whole(usual), median(values), cuts[0], cuts[-1]))
    return Draws(case.label, len(guesses), len(outcomes), draws - len(outcomes), figures)
