"""Runs on a cluster that is made by hand: the answers of workers, and lost workers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.experiments.outcomes import RUN
from tests.harness import loop_config
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.running import cluster
from wbsim.experiments.running.jobs import ATTEMPTS, Failure, Job
from wbsim.experiments.running.store import model_version

TEXT = loop_config("fs_mark -S0 -n 30 -s 4096 -L 2 -d a", dirty_mib=2)


def jobs(count: int) -> list[Job]:
    """Return *count* replications of one case."""
    (case,) = parse(TEXT, "x.toml").cases
    return [Job(case, 1, dice) for dice in range(count)]


def test_worker_with_another_model_refuses_the_job() -> None:
    """The failure is one of the input, because another attempt would fail, too."""
    (job,) = jobs(1)
    found = cluster._attempt(job, "another")
    assert isinstance(found, Failure)
    assert (found.kind, found.again) == ("input", False)
    assert "not another; install the same wbsim on it" in found.message
    assert not isinstance(cluster._attempt(job, model_version()), Failure)


def test_lost_worker_costs_an_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three jobs are run, and two of them lose workers.

    * job 0: its worker is lost twice, then the job ends
    * job 1: its worker is lost each time
    * job 2: ends in the first attempt
    """
    submitted: list[int] = []

    class Futures(list[Any]):
        def add(self, future: Any) -> None:
            self.append(future)

        def __iter__(self) -> Any:
            while self:
                yield self.pop(0)

    class Client:
        def submit(self, _: Any, job: Job, version: str, *, pure: bool) -> Any:
            assert (version, pure) == (model_version(), False)
            place = job.replication
            submitted.append(place)
            lost = place == 1 or (place == 0 and submitted.count(0) < 3)
            status = "error" if lost else "finished"
            return _Future(status=status, result=lambda: RUN, exception=lambda: "killed")

        def close(self) -> None:
            submitted.append(-1)

    monkeypatch.setattr(cluster, "_client", lambda _: (Client(), Futures))
    ended = dict(cluster.Cluster("there").run(jobs(3), None))
    assert submitted == [0, 1, 2, 0, 1, 0, 1, -1]
    assert (ended[0], ended[2]) == (RUN, RUN)
    lost = ended[1]
    assert isinstance(lost, Failure)
    assert (lost.kind, lost.message, lost.attempts) == ("lost", "its worker was lost (killed)", ATTEMPTS)


class _Future(SimpleNamespace):
    __hash__ = object.__hash__  # type: ignore[assignment]
