"""Run an experiment: every case, with its replications; a single run is a sweep of one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice

from wbsim.experiments.config.case import Experiment
from wbsim.experiments.config.problems import bad
from wbsim.experiments.running.execute import How, Ran, Runs
from wbsim.experiments.running.jobs import MOST_RUNS, Job
from wbsim.experiments.running.outcome import Outcome
from wbsim.experiments.running.store import replace_whole
from wbsim.experiments.statistics.dataset import IDENTITY, tidy
from wbsim.experiments.statistics.figures import COLUMNS, FIGURES
from wbsim.experiments.sweeps.precision import FEWEST, MOST, Precision


def run_experiment(
    experiment: Experiment, how: How, replications: int | None = None, precision: Precision | None = None
) -> Ran:
    """Every case of *experiment* so often as is said here, or else as it says itself; with a *precision*,
    until that is reached.  Replication r has the same dice in all cases.  With a directory, its dataset is
    written, too.

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
