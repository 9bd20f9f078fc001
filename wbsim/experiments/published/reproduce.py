"""The comparison of published and simulated figures, which shows how accurate the model is."""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from wbsim.experiments.config.case import Experiment
from wbsim.experiments.config.experiment import config_path, load
from wbsim.experiments.config.problems import bad
from wbsim.experiments.published.figures import METRICS, Published, published_rows
from wbsim.experiments.results.intervals import Steady, interval_of, steady_of
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.execute import How, run_jobs
from wbsim.experiments.running.jobs import Job
from wbsim.sim.param import Origin, Spec

CONFIGS: Final = {
    "P13": "plug.toml",
    "V13": "inodes.toml",
    "N10": "streams.toml",
    "W25": "fragmentation.toml",
    "J09": "pdflush.toml",
}
"""The reports that can be reproduced, with the configurations of their experiments."""
INTERVAL: Final = "t over replications; of one run with iterations, ten batch means of its steady part"


@dataclass(frozen=True)
class Row:
    """A published figure and the simulated one, both in ``unit``.

    ``ci95``: the ends of the 95 % interval.  ``relative_error``: 0.05 for 5 % too much.  ``role``:
    calibrated, predicted, or not modelled yet.  ``steady``: the figure in the steady part of a single run;
    None: the run has too few iterations.
    """

    id: str
    published: float | None
    unit: str
    simulated: float | None
    ci95: tuple[float, float] | None
    relative_error: float | None
    role: str
    steady: Steady | None = None


@dataclass(frozen=True)
class Reproduction:
    """All rows of the named reports, and the cost of the simulation (``cpu_s``, ``peak_rss_mib``).

    ``constants``: the result of `constants_of`.  ``interval``: what the intervals are, in words.
    """

    rows: list[Row]
    constants: dict[str, int]
    cpu_s: float
    peak_rss_mib: float
    seed: int
    interval: str
    quick: bool
    outcomes: list[Outcome]

    def document(self) -> dict[str, object]:
        """Return the document that ``--json`` prints: all fields but ``outcomes``, with rows as dicts."""
        return {
            "rows": [asdict(row) for row in self.rows],
            "constants": self.constants,
            "cpu_s": round(self.cpu_s, 2),
            "peak_rss_mib": round(self.peak_rss_mib, 1),
            "seed": self.seed,
            "interval": self.interval,
            "quick": self.quick,
        }


def reproduce(reports: Sequence[str], *, quick: bool, replications: int | None, how: How) -> Reproduction:
    """Simulate the experiments of *reports*, and return the comparison with the published figures.

    An empty *reports* means all modelled reports.  *quick*: run the smaller experiments that their
    configurations define.  *replications*: the runs of each case; None: one if *quick*, or else as the
    configurations say.
    *how*: the settings of the runs.  A known report without a model has rows without a simulated figure.

    Raises:
        BadInput: a report is unknown, a run cannot end, or its result cannot be written.
        LawBroken: a run broke a law of the model.
        RuntimeError: a run met a fault of wbsim.
    """
    names = list(dict.fromkeys(row.report for row in published_rows()))
    for report in reports:
        if report not in names:
            raise bad("reproduce", f"{report!r} is not a report; use one of {', '.join(names)}")
    selection = list(dict.fromkeys(reports)) or list(CONFIGS)
    experiments = [_experiment(report, quick) for report in selection if report in CONFIGS]
    jobs = [
        Job(case, how.seed, replication)
        for experiment in experiments
        for case in experiment.cases
        for replication in range(replications or experiment.replications)
    ]
    cases = [case for experiment in experiments for case in experiment.cases]
    start_times = os.times()
    outcomes = run_jobs(jobs, how, f"Reproduction of {', '.join(selection)}").all_outcomes() if jobs else []
    end_times = os.times()
    cpu_s = sum(end_times[:4]) - sum(start_times[:4])
    calibrated = {target for case in cases for target in _targets(case.scenario)}
    rows = []
    for row in published_rows():
        if row.report in selection:
            runs = [outcome for job, outcome in zip(jobs, outcomes, strict=True) if row.id in job.case.rows]
            smaller = quick and any(case.quick for case in cases if row.id in case.rows)
            rows.append(row_of(row, runs, calibrated, smaller))
    peak = max((outcome.peak_rss_mib for outcome in outcomes), default=0.0)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    constants = constants_of(experiments)
    return Reproduction(rows, constants, cpu_s, max(peak, own), how.seed, INTERVAL, quick, outcomes)


def _experiment(report: str, quick: bool) -> Experiment:
    path = config_path(CONFIGS[report])
    whole = load(path)
    if not quick:
        return whole
    quick_of = {case.variant: case.quick for case in whole.cases}
    cases = tuple(
        case for variant, overrides in quick_of.items() for case in load(path, overrides, variant).cases
    )
    return replace(whole, cases=cases, replications=1)


def _targets(spec: Spec) -> set[str]:
    return {target for number in spec.numbers() if number.provenance for target in number.provenance.targets}


def row_of(row: Published, runs: Sequence[Outcome], calibrated: set[str], smaller: bool) -> Row:
    """Return *row* with the mean figure of *runs*, which is None if the figure is unknown in every run.

    Without *runs*, the role is "not modelled yet".  *calibrated*: the ids of the rows that constants were
    fitted to.  *smaller*: the runs are of a smaller experiment, so a figure that grows with its size has no
    error.
    """
    metric = METRICS.get((row.metric, row.unit))
    if metric is None or not runs:
        return Row(row.id, row.value, row.unit, None, None, None, "not modelled yet")
    value, low, high = interval_of(metric, runs)
    steady = steady_of(metric, runs[0]) if len(runs) == 1 else None
    has_value = not math.isnan(value)
    error = value / row.value - 1 if has_value and row.value and not (smaller and metric.grows) else None
    interval = None if math.isnan(low) else (low, high)
    return Row(
        row.id,
        row.value,
        row.unit,
        value if has_value else None,
        interval,
        error,
        "calibrated" if row.id in calibrated else "predicted",
        steady,
    )


def constants_of(experiments: Sequence[Experiment]) -> dict[str, int]:
    """Return how many numbers of the scenarios have each origin, such as "measured" or "assumed".

    A number counts once for all cases of an experiment.  An origin without a number has the count 0.
    """
    counts = dict.fromkeys((origin.value for origin in Origin), 0)
    for experiment in experiments:
        numbers = [number for case in experiment.cases for number in case.scenario.numbers()]
        for origin in {
            number.path: number.provenance.origin for number in numbers if number.provenance
        }.values():
            counts[origin.value] += 1
    return counts
