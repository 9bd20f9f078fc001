"""The one way to run cases: in processes, with a store, on a cluster; whatever fails."""

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
from wbsim.experiments.running import jobs as jobs_module
from wbsim.experiments.running import workers as workers_module
from wbsim.experiments.running.execute import How, Runs, run_jobs
from wbsim.experiments.running.jobs import ATTEMPTS, Failure, Job, attempt
from wbsim.experiments.running.outcome import Outcome
from wbsim.experiments.running.progress import Progress
from wbsim.experiments.running.results import read_results
from wbsim.experiments.running.simulate import run_case
from wbsim.experiments.running.workers import Budget, Workers
from wbsim.sim.invariants import LawBroken

TEXT = loop_config(f"{FIO} --rw=randwrite --nrfiles=2 --filesize=1m --name=a", dirty_mib=2)


def experiment(*lists: str) -> Experiment:
    """Small files; so many of them as is asked for."""
    return parse(TEXT, "x.toml", asked=Asked(lists))


def jobs_of(*lists: str, replications: int = 1) -> list[Job]:
    """Every case, with its replications."""
    cases = experiment(*lists).cases
    return [Job(case, 3, dice) for case in cases for dice in range(replications)]


def of_the_model(outcome: Outcome | Failure) -> Outcome:
    """Without what the machine that simulates adds."""
    assert isinstance(outcome, Outcome), outcome
    return replace(outcome, cpu_s=0.0, peak_rss_mib=0.0)


def test_jobs_are_run_in_processes_and_come_in_their_order() -> None:
    """As one by one; each replication and each seed has dice of its own."""
    (case,) = experiment().cases
    asked = [Job(case, 3, 1), Job(case, 3, 0), Job(case, 4, 0)]
    one_by_one = [of_the_model(run_case(*job)) for job in asked]
    ran = run_jobs(asked, How(processes=2))
    assert [of_the_model(outcome) for outcome in ran.results] == one_by_one
    assert [(outcome.seed, outcome.replication) for outcome in one_by_one] == [(3, 1), (3, 0), (4, 0)]
    assert len({outcome.wall_time for outcome in one_by_one}) == 3
    assert all(outcome.cpu_s > 0 for outcome in ran.outcomes)


def test_nothing_is_run_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither what was asked for before, nor what is in the directory, nor two cases that are alike; each
    result bears the names of its own case.
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


def test_a_plan_has_every_case_of_those_that_are_alike(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One run stands for both: each has its place among the results of the directory."""
    ran = simulate_by(monkeypatch, lambda job: RUN)
    alike = parse(f"{TEXT}[variants.a]\n[variants.b]\n", "x.toml").cases
    run_jobs([Job(case, 1) for case in alike], How(directory=tmp_path))
    assert len(ran) == 1
    assert [outcome.variant for outcome in read_results(tmp_path).outcomes] == ["a", "b"]


def test_what_was_run_is_known_without_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the same `Runs` is asked."""
    ran = simulate_by(monkeypatch, lambda job: replace(RUN, seed=job.seed))
    runs = Runs(How())
    first = runs.run(jobs_of("workload.nrfiles=1,2"))
    assert runs.run(jobs_of("workload.nrfiles=1,2")).results == first.results
    assert len(ran) == 2


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file with a line for each attempt, by its number of files; runs themselves are quick, and one is
    poisonous.
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
        (5, "error", ATTEMPTS, "ValueError: poison"),
        (6, "law", 1, "something was lost"),
        (7, None, 2, ""),
        (8, "lost", ATTEMPTS, "its worker was ended (SIGKILL)"),
        (9, None, 2, ""),
        (10, "lost", ATTEMPTS, "its worker was stopped"),
    ],
    ids=["an error", "a law", "killed once", "killed each time", "stopped once", "stopped each time"],
)
def test_what_fails_is_tried_again_and_then_recorded(
    files: int, kind: str | None, attempts: int, told: str, seen: Path, tmp_path: Path
) -> None:
    """While the others go on: three times at most; a broken law would be broken again. A rerun tries what
    failed, and nothing else.
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


def test_a_law_a_fault_and_a_bad_input_are_told_apart(seen: Path) -> None:
    """The traceback says where; what cannot end is the input's."""
    (case,) = experiment().cases
    failure = attempt(Job(replace(case, scenario=jobs_of("workload.nrfiles=5")[0].case.scenario), 1))
    assert isinstance(failure, Failure)
    assert 'raise ValueError("poison")' in failure.traceback
    assert not Failure("law", "").again
    assert not Failure("input", "").again


def test_a_run_that_does_not_end_is_told_as_input() -> None:
    """With its variant, and the remedy; the others are there."""
    cases = parse(f'{TEXT}[variants.a]\n[variants.b]\ngive_up = "1 ms"\n', "x.toml").cases
    ran = run_jobs([Job(case, 1) for case in cases], How())
    assert [outcome.variant for outcome in ran.outcomes] == ["a"]
    ((_, failure),) = ran.failures
    assert failure.kind == "input"
    assert "variant b" in failure.message
    assert "raise give_up" in failure.message


def test_a_run_waits_for_memory(monkeypatch: pytest.MonkeyPatch, seen: Path) -> None:
    """Where one fills most of what there is, they run one after the other; all of them, in the end."""
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


def test_a_run_that_is_lost_gives_its_memory_back(monkeypatch: pytest.MonkeyPatch, seen: Path) -> None:
    """After the last attempt of the one that is killed each time: in the end nothing is taken."""
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
    assert [budget._running for budget in budgets] == [{}]


def test_progress_is_told_by_each_run_until_it_ends() -> None:
    """Every iteration, under the place of its job."""
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


def test_who_stops_listening_leaves_no_worker() -> None:
    """A generator that is closed ends its workers."""
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
    """Run two jobs in two workers below a process of their own, whose number is given; each is *run*."""
    monkeypatch.setattr(jobs_module, "run_case", run)
    parent = os.fork()
    if parent == 0:
        with suppress(BaseException):
            run_jobs(jobs_of("workload.nrfiles=1,2"), How(processes=2))
        os._exit(0)
    return parent


def _waits(path: Path, count: int) -> list[int]:
    """The processes that *path* names, as soon as there are so many."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if path.exists() and len(named := path.read_text().split()) >= count:
            return [int(pid) for pid in named]
        time.sleep(0.02)
    raise AssertionError(f"{path} does not name {count}")


def test_workers_end_with_their_parent_in_the_middle_of_a_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Though none of them says or hears anything."""
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


def test_a_worker_leaves_the_keyboard_to_its_parent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """SIGINT goes to all in the foreground; a worker that it ended would cost its run an attempt."""
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


def test_a_worker_that_was_stopped_for_a_moment_is_not_lost(seen: Path) -> None:
    """Twice for less than the limit, which together are more."""
    crew = workers_module.Crew([], None, workers_module.Budget(1.0, {}))
    crew.hire(1)
    (worker,) = crew.workers
    pid = worker.process.pid
    assert pid is not None
    try:
        for _ in range(2):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.05)
            assert crew.lost() == []
            time.sleep(0.4)
            assert crew.lost() == []
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.05)
            assert crew.lost() == []
    finally:
        crew.dismiss()
