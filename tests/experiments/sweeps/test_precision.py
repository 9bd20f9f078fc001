"""Replications until a figure is known well enough: how many each case gets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.experiments.outcomes import RUN, simulate_by
from tests.harness import loop_config
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.running.execute import How
from wbsim.experiments.running.jobs import Failure, Job
from wbsim.experiments.running.outcome import Outcome
from wbsim.experiments.sweeps.run import FEWEST, MOST, Precision, run_experiment

SWEEP = """
[sweep]
grid = { "kernel.dirty.dirty_bytes" = ["2 MiB", "3 MiB", "4 MiB"] }
"""
COMMAND = "fs_mark -S0 -n 30 -s 4096 -L 2 -d a"


def test_each_case_has_as_many_as_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One scatters by a half, one not at all, one fails: that wants no more; the first gets a quarter more
    in each round, one at least, until its interval is within 10 %.
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
    rounds, needed = FEWEST, [FEWEST]
    while rounds < counts[0]:
        rounds += max(1, rounds // 4)
        needed.append(rounds)
    assert counts[0] == needed[-1] > 2 * FEWEST
    assert counts[1] == FEWEST
    first = [job.replication for job in ran if job.case.point == experiment.cases[0].point]
    assert first == list(range(counts[0])), "none is run twice"


@pytest.mark.parametrize(("count", "reached"), [(199, False), (200, True)])
def test_so_many_replications_are_enough_whatever_they_scatter(count: int, reached: bool) -> None:
    """Half of them at 100, half at 300: no interval of that is within a millionth."""
    runs = [replace(RUN, write_iops=100.0 + 200 * (dice % 2), replication=dice) for dice in range(count)]
    assert Precision("write_iops", 1e-6).reached(runs) == reached


def test_unknown_figure_wants_no_more_replications() -> None:
    """A figure that no run has stays unknown; one known value of five has no interval yet."""
    unknown = [replace(RUN, write_iops=None, replication=dice) for dice in range(FEWEST)]
    assert Precision("write_iops", 0.1).reached(unknown)
    assert not Precision("write_iops", 0.1).reached([RUN, *unknown[1:]])
    assert not Precision("write_iops", 0.1).reached(unknown[1:])


def test_no_case_has_more_than_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that never gets there: a quarter more each time would end at 235."""
    experiment = parse(loop_config(COMMAND, dirty_mib=2), "x.toml")
    ran = simulate_by(
        monkeypatch,
        lambda job: replace(RUN, write_iops=100.0 + job.replication % 2, replication=job.replication),
    )
    run_experiment(experiment, How(seed=1), precision=Precision("write_iops", 1e-6))
    assert len(ran) == MOST


def test_what_is_swept_is_called_otherwise_than_a_figure() -> None:
    """Or one of its columns would be lost from the dataset; told before anything is run."""
    points = "[sweep]\nname = 'seed'\npoints = [{ value = 1 }]\n"
    experiment = parse(loop_config(COMMAND, dirty_mib=2) + points, "x.toml")
    with pytest.raises(BadInput, match=r"seed: is the name of a column of the dataset; call it otherwise"):
        run_experiment(experiment, How(seed=1))
