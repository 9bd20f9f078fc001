"""Run an experiment: every case with its replications; a single run is a sweep with one case.

With a `Precision`, a case gets more replications until half of its interval is at most a given share of the
figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from math import isnan
from typing import Final, NamedTuple

from wbsim.experiments.config.case import Experiment
from wbsim.experiments.config.problems import bad, unknown_key
from wbsim.experiments.results.dataset import IDENTITY, jobs_frame, tidy
from wbsim.experiments.results.figures import COLUMNS, FIGURES
from wbsim.experiments.results.intervals import interval_of
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.execute import How, Ran, Runs
from wbsim.experiments.running.jobs import MOST_RUNS, Job
from wbsim.experiments.running.store import replace_whole

FEWEST: Final = 5
"""The first number of replications; with fewer, the interval is too often narrow by chance."""
MOST: Final = 200


class Precision(NamedTuple):
    """A precision: half of the 95 % interval of ``figure`` is at most ``share`` of the figure."""

    figure: str
    share: float

    def reached(self, outcomes: Sequence[Outcome]) -> bool:
        """Return whether *outcomes*, the runs of one case, are enough; fewer than `FEWEST` never are.

        An unknown figure counts as reached, because more runs do not make it known.  `MOST` runs are enough,
        too.
        """
        if len(outcomes) < FEWEST:
            return False
        mean, _, high = interval_of(FIGURES[self.figure], outcomes)
        return isnan(mean) or high - mean <= self.share * abs(mean) or len(outcomes) >= MOST


def precision_of(text: str, asked_by: str = "--until-ci") -> Precision:
    """Return the precision of a text such as ``write_iops=2%``; *asked_by* is named in errors.

    >>> precision_of("write_iops=2%")
    Precision(figure='write_iops', share=0.02)

    Raises:
        BadInput: the figure is unknown, or the share is not a percentage between 0 and 100.
    """
    name, equals, share = text.partition("=")
    if name not in FIGURES:
        raise bad(asked_by, f"{name}: {unknown_key(name, list(FIGURES))}")
    try:
        percent = float(share.strip().removesuffix("%"))
    except ValueError:
        percent = 0.0
    if not equals or not 0 < percent < 100 or not share.strip().endswith("%"):
        raise bad(asked_by, f"{text} has no share above 0 and below 100 %; write {name}=2%")
    return Precision(name, percent / 100)


def run_experiment(
    experiment: Experiment, how: How, replications: int | None = None, precision: Precision | None = None
) -> Ran:
    """Run every case of *experiment*; with a directory in *how*, write the datasets of runs and jobs there.

    *replications*: the runs of each case; None: as the experiment says.  *precision*: begin with `FEWEST`
    runs or more, and add replications until each case has reached this, or has `MOST` runs.  Replication r
    has equal random numbers in all cases.  Failed runs are failures in the result, and not exceptions.

    Raises:
        BadInput: a swept key is named like a column of the dataset, or there are too many runs.  Or a result
            cannot be written or is damaged, or the directory has another experiment, or the cluster cannot be
            reached.
    """
    clashes = [axis for axis in experiment.axes if axis in (*IDENTITY, *COLUMNS.values(), *FIGURES)]
    if clashes:
        raise bad("sweep", "is reserved for a column of the dataset; choose another name", clashes[0])
    at_first = replications or experiment.replications
    if (many := at_first * len(experiment.cases)) > MOST_RUNS:
        raise bad(
            "replications",
            f"{at_first} of each case are {many} runs; give fewer, for at most {MOST_RUNS} runs",
        )
    runs = Runs(how, experiment.title, experiment.axes)
    counts = [max(at_first, FEWEST) if precision is not None else at_first] * len(experiment.cases)
    while True:
        cases = zip(experiment.cases, counts, strict=True)
        batch = runs.run([Job(case, how.seed, dice) for case, count in cases for dice in range(count)])
        short = [] if precision is None else _short_of(precision, batch, counts)
        if not short:
            break
        for place in short:
            counts[place] = min(MOST, counts[place] + max(1, counts[place] // 4))
    if how.directory is not None and batch.outcomes:
        frame = tidy(batch.outcomes, experiment.axes)
        replace_whole(how.directory / "dataset.parquet", partial(frame.to_parquet, index=False))
        jobs = jobs_frame(batch.outcomes, experiment.axes)
        if len(jobs):
            replace_whole(how.directory / "jobs.parquet", partial(jobs.to_parquet, index=False))
    return batch


def _short_of(precision: Precision, batch: Ran, counts: Sequence[int]) -> list[int]:
    """Return the places of the cases that need more replications; a case with a failure needs none."""
    short, results = [], iter(batch.results)
    for place, count in enumerate(counts):
        outcomes = [result for result in islice(results, count) if isinstance(result, Outcome)]
        if len(outcomes) == count and not precision.reached(outcomes):
            short.append(place)
    return short
