"""Replications until a figure is precise: the number for each case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.experiments.outcomes import RUN, simulate_by
from tests.harness import loop_config
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.execute import How
from wbsim.experiments.running.jobs import Failure, Job
from wbsim.experiments.sweeps.run import Precision, run_experiment

SWEEP = """
[sweep]
grid = { "kernel.dirty.dirty_bytes" = ["2 MiB", "3 MiB", "4 MiB"] }
"""
COMMAND = "fs_mark -S0 -n 30 -s 4096 -L 2 -d a"


def test_each_case_gets_the_replications_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round adds a quarter more replications, at least one: 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33.

    * first case: scatters by a half.  Half of the interval must be within 10 % of the mean:

      runs    mean     deviation    t        half of the interval
      27      247.7    63.65        2.056    25.2, which is more than 24.8
      33      248.1    63.44        2.037    22.5, which is less than 24.8

    * second case: does not scatter, and gets the smallest number
    * third case: fails, and gets no more
    """
    experiment = parse(loop_config(COMMAND, dirty_mib=2) + SWEEP, "x.toml")

    def came_to(job: Job) -> Outcome | Failure:
        place = [case.point for case in experiment.cases].index(job.case.point)
        if place == 2:
            return Failure("error", "no")
        iops = 250.0 if place else 250.0 * (1 + (job.replication % 2 - 0.5) / 2)
        return replace(
            RUN, write_iops=iops, point=job.case.point, replication=job.replication, variant=job.case.variant
        )

    ran = simulate_by(monkeypatch, came_to)
    run_experiment(experiment, How(seed=1), precision=Precision("write_iops", 0.1))
    counts = [sum(job.case.point == case.point for job in ran) for case in experiment.cases]
    assert counts[:2] == [33, 5]
    first = [job.replication for job in ran if job.case.point == experiment.cases[0].point]
    assert first == list(range(counts[0])), "no run may run twice"


@pytest.mark.parametrize(("count", "reached"), [(199, False), (200, True)])
def test_largest_number_of_replications_is_enough_at_any_scatter(count: int, reached: bool) -> None:
    """Half of the runs are at 100 and half are at 300, so no interval is within a millionth."""
    runs = [replace(RUN, write_iops=100.0 + 200 * (dice % 2), replication=dice) for dice in range(count)]
    assert Precision("write_iops", 1e-6).reached(runs) == reached


def test_unknown_figure_wants_no_more_replications() -> None:
    """A figure that no run has stays unknown.  One known value of five has no interval yet."""
    unknown = [replace(RUN, write_iops=None, replication=dice) for dice in range(5)]
    assert Precision("write_iops", 0.1).reached(unknown)
    assert not Precision("write_iops", 0.1).reached([RUN, *unknown[1:]])
    assert not Precision("write_iops", 0.1).reached(unknown[1:])


def test_no_case_has_more_than_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """The case never becomes precise, and a quarter more each time would end at 235."""
    experiment = parse(loop_config(COMMAND, dirty_mib=2), "x.toml")
    ran = simulate_by(
        monkeypatch,
        lambda job: replace(RUN, write_iops=100.0 + job.replication % 2, replication=job.replication),
    )
    run_experiment(experiment, How(seed=1), precision=Precision("write_iops", 1e-6))
    assert len(ran) == 200


def test_swept_key_with_the_name_of_a_column_is_refused() -> None:
    """The dataset would lose one of the two columns.  The error comes before anything runs."""
    points = "[sweep]\nname = 'seed'\npoints = [{ value = 1 }]\n"
    experiment = parse(loop_config(COMMAND, dirty_mib=2) + points, "x.toml")
    with pytest.raises(BadInput, match=r"seed: is reserved for a column of the dataset; choose another name"):
        run_experiment(experiment, How(seed=1))
