"""Execution of jobs: in processes, with a store, and with any failure."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.outcomes import RUN, simulate_by
from tests.harness import FIO, loop_config
from wbsim.experiments.config.case import Experiment
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.config.sweeps import Asked
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running import jobs as jobs_module
from wbsim.experiments.running import workers as workers_module
from wbsim.experiments.running.execute import How, Runs, run_jobs
from wbsim.experiments.running.jobs import Failure, Job, attempt
from wbsim.experiments.running.progress import Progress
from wbsim.experiments.running.results import read_results
from wbsim.experiments.running.simulate import run_case
from wbsim.experiments.running.workers import Budget, Workers
from wbsim.sim.invariants import LawBroken

TEXT = loop_config(f"{FIO} --rw=randwrite --nrfiles=2 --filesize=1m --name=a", dirty_mib=2)


def experiment(*lists: str) -> Experiment:
    """Return an experiment of small files with the swept *lists*."""
    return parse(TEXT, "x.toml", sweep=Asked(lists))


def jobs_of(*lists: str, replications: int = 1) -> list[Job]:
    """Return a job for each case and replication."""
    cases = experiment(*lists).cases
    return [Job(case, 3, dice) for case in cases for dice in range(replications)]


def of_the_model(outcome: Outcome | Failure) -> Outcome:
    """Return *outcome* without the figures that depend on the simulating machine."""
    assert isinstance(outcome, Outcome), outcome
    return replace(outcome, cpu_s=0.0, peak_rss_mib=0.0)


def test_processes_return_results_in_the_order_of_jobs() -> None:
    """Each result equals that of a single run.  Each replication and each seed gives another result."""
    (case,) = experiment().cases
    asked = [Job(case, 3, 1), Job(case, 3, 0), Job(case, 4, 0)]
    one_by_one = [of_the_model(run_case(*job)) for job in asked]
    ran = run_jobs(asked, How(processes=2))
    assert [of_the_model(outcome) for outcome in ran.results] == one_by_one
    assert [(outcome.seed, outcome.replication) for outcome in one_by_one] == [(3, 1), (3, 0), (4, 0)]
    assert len({outcome.wall_time for outcome in one_by_one}) == 3
    assert all(outcome.cpu_s > 0 for outcome in ran.outcomes)


def test_no_job_is_run_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A job is not run if it was run before, if the directory has its result or if an equal case is run.

    Each result has the variant and the point of its case.
    """
    ran = simulate_by(monkeypatch, lambda job: replace(RUN, replication=job.replication, seed=job.seed))
    runs = Runs(How(directory=tmp_path / "out"))
    first = runs.run(jobs_of("workload.nrfiles=1,2"))
    assert [outcome.point for outcome in first.outcomes] == [{"workload.nrfiles": 1}, {"workload.nrfiles": 2}]
    runs.run(jobs_of("workload.nrfiles=2,3", replications=2))
    assert [(job.case.point["workload.nrfiles"], job.replication) for job in ran] == [
        (1, 0), (2, 0), (2, 1), (3, 0), (3, 1),
    ]  # fmt: skip
    ran.clear()
    again = run_jobs(jobs_of("workload.nrfiles=1,2,4"), How(directory=tmp_path / "out"))
    assert [job.case.point["workload.nrfiles"] for job in ran] == [4]
    assert [outcome.point["workload.nrfiles"] for outcome in again.outcomes] == [1, 2, 4]
    assert of_the_model(again.results[0]) == replace(of_the_model(first.results[0]), samples=RUN.samples)
    ran.clear()
    alike = parse(f"{TEXT}[variants.a]\n[variants.b]\n", "x.toml").cases
    results = run_jobs([Job(case, 1) for case in alike], How())
    assert len(ran) == 1
    assert [outcome.variant for outcome in results.outcomes] == ["a", "b"]


def test_plan_lists_each_of_several_equal_cases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A single run stands for both cases, which are both among the results of the directory."""
    ran = simulate_by(monkeypatch, lambda job: RUN)
    alike = parse(f"{TEXT}[variants.a]\n[variants.b]\n", "x.toml").cases
    run_jobs([Job(case, 1) for case in alike], How(directory=tmp_path))
    assert len(ran) == 1
    assert [outcome.variant for outcome in read_results(tmp_path).outcomes] == ["a", "b"]


def test_runs_remember_results_without_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second call of one `Runs` returns the results of the first."""
    ran = simulate_by(monkeypatch, lambda job: replace(RUN, seed=job.seed))
    runs = Runs(How())
    first = runs.run(jobs_of("workload.nrfiles=1,2"))
    assert runs.run(jobs_of("workload.nrfiles=1,2")).results == first.results
    assert len(ran) == 2


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file with a line for each attempt, which is the number of files of the job.

    Runs are quick, and the numbers 5 to 10 choose a failure.
    """
    lines = tmp_path / "attempts"
    lines.write_text("")

    def run(case: Any, seed: int, replication: int, on_progress: Any = None) -> Outcome:
        (program,) = case.scenario.programs.values()
        files = program.workload.total_files
        with lines.open("a") as file:
            file.write(f"{files}\n")
        attempts = lines.read_text().split().count(str(files))
        match files:
            case 5:
                raise ValueError("poison")
            case 6:
                raise LawBroken("something was lost")
            case 7 if attempts == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            case 8:
                os.kill(os.getpid(), signal.SIGKILL)
            case 9 if attempts == 1:
                os.kill(os.getpid(), signal.SIGSTOP)
            case 10:
                os.kill(os.getpid(), signal.SIGSTOP)
        return replace(RUN, variant=case.variant, point=case.point)

    monkeypatch.setattr(jobs_module, "run_case", run)
    monkeypatch.setattr(workers_module, "_STOPPED_S", 0.6)
    return lines


@pytest.mark.parametrize(
    ("files", "kind", "attempts", "told"),
    [
        (5, "error", 3, "ValueError: poison"),
        (6, "law", 1, "something was lost"),
        (7, None, 2, ""),
        (8, "lost", 3, "its worker was ended (SIGKILL)"),
        (9, None, 2, ""),
        (10, "lost", 3, "its worker was stopped"),
    ],
    ids=["an error", "a law", "killed once", "killed each time", "stopped once", "stopped each time"],
)
def test_failed_job_is_tried_again_and_then_recorded(
    files: int, kind: str | None, attempts: int, told: str, seen: Path, tmp_path: Path
) -> None:
    """A job is tried three times at most, and the others continue.  A broken law is not tried again.

    A second command tries only the failed job.
    """
    asked = jobs_of(f"workload.nrfiles=1,{files},2,3")
    how = How(directory=tmp_path / "out", processes=2)
    ran = run_jobs(asked, how)
    tried = seen.read_text().split()
    assert tried.count(str(files)) == attempts
    assert sorted(set(tried)) == sorted({"1", "2", "3", str(files)})
    assert len(ran.outcomes) == 4 - (kind is not None)
    if kind is None:
        return
    ((job, failure),) = ran.failures
    assert job.case.point["workload.nrfiles"] == files
    assert (failure.kind, failure.attempts, failure.message) == (kind, attempts, told)
    (kept,) = (tmp_path / "out" / "failed").iterdir()
    assert told in (kept / "traceback.txt").read_text()
    with pytest.raises((BadInput, RuntimeError, LawBroken), match=r"poison|lost|ended|stopped"):
        ran.all_outcomes()
    seen.write_text("")
    assert len(run_jobs(asked, how).failures) == 1
    assert set(seen.read_text().split()) == {str(files)}


def test_failures_of_law_and_input_are_not_tried_again(seen: Path) -> None:
    """The failure of an error has a traceback with its place."""
    (case,) = experiment().cases
    failure = attempt(Job(replace(case, scenario=jobs_of("workload.nrfiles=5")[0].case.scenario), 1))
    assert isinstance(failure, Failure)
    assert 'raise ValueError("poison")' in failure.traceback
    assert not Failure("law", "").again
    assert not Failure("input", "").again


def test_run_that_does_not_end_is_an_input_failure() -> None:
    """The message has the variant and the remedy.  The other variant has its result."""
    cases = parse(f'{TEXT}[variants.a]\n[variants.b]\ngive_up = "1 ms"\n', "x.toml").cases
    ran = run_jobs([Job(case, 1) for case in cases], How())
    assert [outcome.variant for outcome in ran.outcomes] == ["a"]
    ((_, failure),) = ran.failures
    assert failure.kind == "input"
    assert "variant b" in failure.message
    assert "raise give_up" in failure.message


def test_a_run_waits_for_memory(monkeypatch: pytest.MonkeyPatch, seen: Path) -> None:
    """Two runs of 60 MiB run one after the other if 100 MiB are available.

    Two runs of 10 MiB run at once.
    """
    monkeypatch.setattr(workers_module, "available_mib", lambda: 100.0)
    given: list[int] = []
    give = workers_module.Crew.give

    def counted(crew: Any) -> None:
        give(crew)
        given.append(sum(worker.place is not None for worker in crew.workers))

    monkeypatch.setattr(workers_module.Crew, "give", counted)
    jobs = jobs_of("workload.nrfiles=1,2,3,4")
    assert len(list(Workers(2, {"base": 60.0}).run(jobs, None))) == 4
    assert max(given) == 1
    given.clear()
    assert len(list(Workers(2, {"base": 10.0}).run(jobs, None))) == 4
    assert max(given) == 2


def test_lost_run_gives_its_memory_back(monkeypatch: pytest.MonkeyPatch, seen: Path) -> None:
    """A job whose worker is killed each time holds no memory after its last attempt."""
    monkeypatch.setattr(workers_module, "available_mib", lambda: 1_000.0)
    budgets: list[Any] = []

    class Kept(Budget):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            budgets.append(self)

    monkeypatch.setattr(workers_module, "Budget", Kept)
    jobs = jobs_of("workload.nrfiles=8,1,2")
    ended = dict(Workers(2, {"base": 60.0}).run(jobs, None))
    assert isinstance(ended[0], Failure)
    assert [isinstance(ended[place], Outcome) for place in (1, 2)] == [True, True]
    assert [budget._kinds for budget in budgets] == [{}]


def test_each_run_reports_progress_until_it_ends() -> None:
    """A report comes after every iteration, with the place of the job."""
    heard: list[tuple[int, Progress]] = []
    text = loop_config("fs_mark -S0 -n 2500 -s 4096 -L 8 -d a -d b", dirty_mib=2)
    (case,) = parse(text, "x.toml").cases
    ended = list(Workers(2).run([Job(case, 1), Job(case, 1, 1)], lambda *told: heard.append(told)))
    assert {place for place, _ in ended} == {0, 1}
    for place in (0, 1):
        shares = [report.share for of, report in heard if of == place]
        assert shares == sorted(shares)
        assert {8 * share for share in shares} <= set(range(9))
        assert shares[-1] == 1
    assert {report.label for _, report in heard} == {"base"}


def test_closed_generator_ends_its_workers() -> None:
    """The consumer takes one result and closes the generator."""
    ended = Workers(2).run(jobs_of("workload.nrfiles=1,2,3,4"), None)
    next(ended)
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    before = children.read_text().split()
    ended.close()
    deadline = time.monotonic() + 10
    while len(children.read_text().split()) > len(before) - 2 and time.monotonic() < deadline:
        os.sched_yield()
    assert len(children.read_text().split()) == len(before) - 2


def _in_a_process(monkeypatch: pytest.MonkeyPatch, run: Any) -> int:
    """Run two jobs in two workers of a child process, and return its pid; each job calls *run*."""
    monkeypatch.setattr(jobs_module, "run_case", run)
    parent = os.fork()
    if parent == 0:
        with suppress(BaseException):
            run_jobs(jobs_of("workload.nrfiles=1,2"), How(processes=2))
        os._exit(0)
    return parent


def _waits(path: Path, count: int) -> list[int]:
    """Return the pids in the file *path* as soon as it has *count* of them."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if path.exists() and len(named := path.read_text().split()) >= count:
            return [int(pid) for pid in named]
        time.sleep(0.02)
    raise AssertionError(f"{path} does not name {count}")


def test_workers_end_with_their_parent_during_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The workers neither send nor receive anything when the parent is killed."""
    pids = tmp_path / "pids"

    def long(*_: Any, on_progress: Any) -> Outcome:
        with pids.open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(30)
        return RUN

    parent = _in_a_process(monkeypatch, long)
    found = _waits(pids, 2)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    until = time.monotonic() + 5
    while any(Path(f"/proc/{pid}").exists() for pid in found):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_worker_survives_ctrl_c(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ctrl-C sends SIGINT to all processes in the foreground.

    A lost worker would cost its job an attempt.
    """
    pids, ended = tmp_path / "pids", tmp_path / "ended"

    def struck(*_: Any, on_progress: Any) -> Outcome:
        with pids.open("a") as file:
            file.write(f"{os.getpid()}\n")
        os.kill(os.getpid(), signal.SIGINT)
        with ended.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return RUN

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        os.waitpid(_in_a_process(monkeypatch, struck), 0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert sorted(pids.read_text().split()) == sorted(ended.read_text().split())
    assert len(pids.read_text().split()) == 2


def test_briefly_stopped_worker_is_not_lost(seen: Path) -> None:
    """The worker is stopped twice for less than the limit, and in total for more."""
    crew = workers_module.Crew([], None, workers_module.Budget(1.0, {}))
    crew.hire(1)
    (worker,) = crew.workers
    pid = worker.process.pid
    assert pid is not None
    try:
        for _ in range(2):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.05)
            assert crew.stopped_workers() == []
            time.sleep(0.4)
            assert crew.stopped_workers() == []
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.05)
            assert crew.stopped_workers() == []
    finally:
        crew.dismiss()
