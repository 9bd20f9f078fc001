"""Run an experiment: every case, with its replications; a single run is a sweep of one.

With a `Precision`, a case has more replications until half of its interval is a given part of a figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from math import isnan
from typing import Final, NamedTuple

from wbsim.experiments.config.case import Experiment
from wbsim.experiments.config.problems import bad, unknown_key
from wbsim.experiments.running.execute import How, Ran, Runs
from wbsim.experiments.running.jobs import MOST_RUNS, Job
from wbsim.experiments.running.outcome import Outcome
from wbsim.experiments.running.store import replace_whole
from wbsim.experiments.statistics.dataset import IDENTITY, tidy
from wbsim.experiments.statistics.figures import COLUMNS, FIGURES
from wbsim.experiments.statistics.intervals import interval_of

FEWEST: Final = 5
"""The number of replications at first: the interval of fewer is too often narrow by chance."""
MOST: Final = 200


class Precision(NamedTuple):
    """Half of the 95 % interval of a *figure* is to be at most this *share* of it."""

    figure: str
    share: float

    def reached(self, outcomes: Sequence[Outcome]) -> bool:
        """Return whether the runs of one case are enough; more runs do not make an unknown figure known."""
        if len(outcomes) < FEWEST:
            return False
        mean, _, high = interval_of(FIGURES[self.figure], outcomes)
        return isnan(mean) or high - mean <= self.share * abs(mean) or len(outcomes) >= MOST


def precision_of(text: str) -> Precision:
    """Read a precision such as ``write_iops=2%``.

    Raises:
        BadInput: there is no such figure, or no such share.
    """
    name, equals, share = text.partition("=")
    if name not in FIGURES:
        raise bad("--until-ci", f"{name}: {unknown_key(name, list(FIGURES))}")
    try:
        percent = float(share.strip().removesuffix("%"))
    except ValueError:
        percent = 0.0
    if not equals or not 0 < percent < 100 or not share.strip().endswith("%"):
        raise bad("--until-ci", f"{text} does not say how precise; write {name}=2%")
    return Precision(name, percent / 100)


def run_experiment(
    experiment: Experiment, how: How, replications: int | None = None, precision: Precision | None = None
) -> Ran:
    """Run every case of *experiment* as often as is said here, or else as it says itself.

    With a *precision*, run until that is reached.  Replication r has the same random numbers in all cases.
    With a directory, its dataset is written, too.

    Raises:
        BadInput: what is swept is called like a figure, a result cannot be written, or the cluster cannot be
        reached.
    """
    taken = [axis for axis in experiment.axes if axis in (*IDENTITY, *COLUMNS.values(), *FIGURES)]
    if taken:
        raise bad("sweep", "is the name of a column of the dataset; call it otherwise", taken[0])
    at_first = replications or experiment.replications
    if (many := at_first * len(experiment.cases)) > MOST_RUNS:
        raise bad("replications", f"they make {many} runs; ask for fewer: {MOST_RUNS} are the most")
    runs = Runs(how, experiment.title, experiment.axes)
    counts = [max(at_first, FEWEST) if precision is not None else at_first] * len(experiment.cases)
    while True:
        cases = zip(experiment.cases, counts, strict=True)
        ran = runs.run([Job(case, how.seed, dice) for case, count in cases for dice in range(count)])
        short = [] if precision is None else _short_of(precision, ran, counts)
        if not short:
            break
        for place in short:
            counts[place] = min(MOST, counts[place] + max(1, counts[place] // 4))
    if how.directory is not None and ran.outcomes:
        frame = tidy(ran.outcomes, experiment.axes)
        replace_whole(how.directory / "dataset.parquet", partial(frame.to_parquet, index=False))
    return ran


def _short_of(precision: Precision, ran: Ran, counts: Sequence[int]) -> list[int]:
    """The places of the cases that want more replications; one that failed wants none."""
    short, results = [], iter(ran.results)
    for place, count in enumerate(counts):
        outcomes = [result for result in islice(results, count) if isinstance(result, Outcome)]
        if len(outcomes) == count and not precision.reached(outcomes):
            short.append(place)
    return short
