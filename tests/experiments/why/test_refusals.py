"""Refused runs of a sensitivity: reasons, counts and causes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.experiments.outcomes import RUN, simulate_by
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.running.execute import How
from wbsim.experiments.running.jobs import Failure, Job
from wbsim.experiments.why.guesses import guesses_of
from wbsim.experiments.why.refusals import Refused, refusals_of
from wbsim.experiments.why.sensitivity import sensitivity

USUAL = {"chunk": 64, "size": 10, "other": 1}


def full(**values: int) -> Refused:
    """Return a run with these numbers that found no space."""
    return Refused(values, f"no space after {values['size']} s")


def test_the_cause_separates_the_refused_runs_from_the_others() -> None:
    """The refused values of the cause lie all above or all below the accepted ones.

    A number that a run does not set counts with its usual value.
    """
    late = [full(size=size, other=1) for size in (8, 9)]
    (reason,) = refusals_of(late, [{"size": 10, "other": 1}, {"other": 0}], USUAL)
    assert reason.text() == "2: no space after 8 .. 9 s; with size = 8, 9"
    (above,) = refusals_of(late, [{"size": 7, "other": 1}], USUAL)
    assert above.causes == ("size",)
    (reason,) = refusals_of(late, [{"size": 9, "other": 1}], USUAL)
    assert reason.text() == "2: no space after 8 .. 9 s; no single number is the cause"
    (reason,) = refusals_of(late, [], USUAL)
    assert reason.causes == ()


def test_reasons_are_grouped_by_their_messages() -> None:
    """Numbers of a message become a range; the most frequent reason comes first, with two causes."""
    other = Refused({"size": 3, "other": 9}, "a law of chunk 64 is broken")
    refused = [other, *(full(size=size, other=5) for size in (8, 9))]
    space, law = refusals_of(refused, [{"size": 5}], USUAL)
    assert space.text() == "2: no space after 8 .. 9 s; with size = 8, 9 and other = 5"
    assert law.text() == "1: a law of chunk 64 is broken; with size = 3 and other = 9"
    assert space.document() == {
        "reason": "no space after 8 .. 9 s", "count": 2, "causes": ["size", "other"],
        "points": [{"size": 8, "other": 5}, {"size": 9, "other": 5}],
    }  # fmt: skip


def test_many_values_are_a_range() -> None:
    """Seven values of a cause are shown by their ends."""
    (reason,) = refusals_of([full(size=20 + n) for n in range(7)], [{"size": 1}], USUAL)
    assert reason.text().endswith("with size = 20 .. 26")


RAID = """\
title = "A stripe set"
[scenario]
machine.like = "p13-vm"
kernel.like = "5.15"
filesystem.like = "p13-xfs"
workload.command = "fs_mark -S0 -n 20 -s 4096 -L 2 -d a -d b"
"""


def test_a_sensitivity_lists_what_the_model_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some runs fail after they began; the counts of the reasons add up."""
    (case,) = parse(RAID, "x.toml").cases
    (cv,) = (of for of in guesses_of(case.scenario) if of.path.endswith("processors.cv"))

    def of(job: Job) -> Any:
        (number,) = (n.value for n in job.case.scenario.numbers() if n.path == cv.path)
        return RUN if number < cv.high else Failure("law", f"cv {number} breaks it")

    simulate_by(monkeypatch, of)
    found = sensitivity(case, "wall_time", How(), trajectories=3, most=2, sobol=0)
    (reason,) = found.refusals
    assert reason.causes == (cv.path,)
    assert found.refusal_count == len(reason.points) > 0
    lines = found.text().splitlines()
    (late,) = lines[lines.index("refused runs, by reason:") + 1 :]
    assert f"a law of the model is broken: cv {cv.high} breaks it; with {cv.path} = {cv.high:g}" in late
    (told,) = json.loads(json.dumps(found.document()))["refusals"]
    assert len(told["points"]) == found.refusal_count
