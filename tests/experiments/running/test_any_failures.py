"""Runs that fail in any way, in one to three processes, repeatedly, next to a simple account of attempts."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.experiments.outcomes import RUN
from tests.experiments.running.test_execute import jobs_of
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running import jobs as jobs_module
from wbsim.experiments.running.execute import How, run_jobs
from wbsim.experiments.running.jobs import ATTEMPTS, Failure
from wbsim.experiments.sweeps.status import status_of
from wbsim.sim.invariants import LawBroken

SCRIPTS = st.lists(
    st.lists(st.sampled_from(["error", "lost", "law", "ends"]), max_size=5), min_size=1, max_size=5
)
"""The result of each attempt of each job; all further attempts end."""


def expected(script: list[str]) -> tuple[str, int]:
    """Return the result of a job and the number of its attempts, and remove these from its *script*."""
    for attempts in range(1, ATTEMPTS + 1):
        came = script.pop(0) if script else "ends"
        if came in ("ends", "law") or attempts == ATTEMPTS:
            return came, attempts
    raise AssertionError


@settings(max_examples=12, deadline=None)
@given(SCRIPTS, st.integers(1, 3), st.integers(1, 3))
def test_job_ends_as_its_attempts_decide(scripts: list[list[str]], processes: int, times: int) -> None:
    """Results come in the order of the jobs.

    A finished job is kept and not run again, and a failed job is tried again by the same command.  No
    temporary file is left.
    """
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as monkeypatch:
        tried, out = Path(directory, "tried"), Path(directory, "out")
        tried.mkdir()

        def run(case: Any, seed: int, replication: int, on_progress: Any = None) -> Outcome:
            (program,) = case.scenario.programs.values()
            number = program.workload.total_files - 1
            with (tried / str(number)).open("a+") as file:
                file.write("x")
                attempts = file.tell()
            match scripts[number][attempts - 1] if attempts <= len(scripts[number]) else "ends":
                case "error":
                    raise ValueError("no")
                case "law":
                    raise LawBroken("lost")
                case "lost":
                    os.kill(os.getpid(), signal.SIGKILL)
            return replace(RUN, variant=case.variant, point=case.point, files=number)

        monkeypatch.setattr(jobs_module, "run_case", run)
        asked = jobs_of(f"workload.nrfiles={','.join(str(n + 1) for n in range(len(scripts)))}")
        left, ended = [list(script) for script in scripts], set[int]()
        count = [0] * len(scripts)
        for _ in range(times):
            results = run_jobs(asked, How(directory=out, processes=processes)).results
            for number, result in enumerate(results):
                if number in ended:
                    assert isinstance(result, Outcome)
                    continue
                came, attempts = expected(left[number])
                count[number] += attempts
                if came == "ends":
                    ended.add(number)
                    assert isinstance(result, Outcome)
                    assert result.files == number
                else:
                    assert isinstance(result, Failure)
                    assert (result.kind, result.attempts) == (came, attempts)
            assert [len((tried / str(number)).read_text()) for number in range(len(scripts))] == count
            found = status_of(out).counts
            failed = len(scripts) - len(ended)
            assert {name: many for name, many in found.items() if many} == {
                name: many for name, many in (("done", len(ended)), ("failed", failed)) if many
            }
            assert not [path for path in out.rglob("*") if path.name.startswith(".")]
