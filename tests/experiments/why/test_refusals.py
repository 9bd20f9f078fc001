"""Refused runs of a sensitivity: reasons, counts and causes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.experiments.outcomes import RUN, simulate_by
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.running.execute import How
from wbsim.experiments.running.jobs import Failure, Job
from wbsim.experiments.why.refusals import Refused, refusals_of
from wbsim.experiments.why.sensitivity import guesses_of, sensitivity

USUAL = {"chunk": 64, "size": 10, "count": 10, "other": 1}


def messages(values: Mapping[str, Any]) -> list[str]:
    """Return the messages of a model that accepts multiples of 4 and a product of at most 400."""
    of = {**USUAL, **values}
    found = ["chunk: should be a multiple of 4"] if of["chunk"] % 4 else []
    if of["size"] * of["count"] > 400:
        found.append(f"{of['size'] * of['count']} B are asked for on sd0 and it holds 400 B")
    return found


def early(**values: int) -> Refused:
    """Return the run with these numbers, refused before it was started."""
    return Refused(values, tuple(messages(values)), early=True)


def test_reasons_are_grouped_and_name_their_causes() -> None:
    """Numbers of a message become a range, and a product has two causes.  A run may count for two reasons."""
    refused = [
        early(chunk=65, size=10, other=2), early(chunk=67, size=10, other=1),
        early(chunk=65, size=10, other=3), early(size=30, count=20, other=5),
        early(chunk=69, size=50, count=10),
    ]  # fmt: skip
    chunk, product = refusals_of(refused, [], USUAL, messages)
    assert chunk.text() == "4: chunk: should be a multiple of 4; with chunk = 65, 67, 69"
    assert product.text() == (
        "2: 500 .. 600 B are asked for on sd0 and it holds 400 B; with size = 30, 50 and count = 10, 20"
    )
    assert chunk.document()["points"][0] == {"chunk": 65, "size": 10, "other": 2}
    assert chunk.document()["causes"] == ["chunk"]


def test_a_cause_may_need_several_numbers_at_once() -> None:
    """Each of size 90 and count 90 alone is refused, so no single usual value lifts the refusal."""
    (reason,) = refusals_of([early(size=90, count=90, other=4)], [], USUAL, messages)
    assert reason.causes == ("size", "count")


def test_many_values_are_a_range() -> None:
    """Seven values of a cause are shown by their ends."""
    (reason,) = refusals_of([early(chunk=4 * n + 1) for n in range(7)], [], USUAL, messages)
    assert reason.text().endswith("with chunk = 1 .. 25")


def test_the_cause_of_a_later_failure_separates_the_runs() -> None:
    """The refused values of the cause lie all above or all below the accepted ones.

    A number that a run does not set counts with its usual value.
    """
    late = [
        Refused({"size": size, "other": 1}, (f"no space after {size} s",), early=False) for size in (8, 9)
    ]
    (reason,) = refusals_of(late, [{"size": 10, "other": 1}, {"other": 0}], USUAL, messages)
    assert reason.text() == "2: no space after 8 .. 9 s; with size = 8, 9"
    (above,) = refusals_of(late, [{"size": 7, "other": 1}], USUAL, messages)
    assert above.causes == ("size",)
    (reason,) = refusals_of(late, [{"size": 9, "other": 1}], USUAL, messages)
    assert reason.text() == "2: no space after 8 .. 9 s; no single number is the cause"
    (reason,) = refusals_of(late, [], USUAL, messages)
    assert reason.causes == ()


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
    assert found.refused == len(reason.points) > 0
    lines = found.text().splitlines()
    (late,) = lines[lines.index("refused runs, by reason:") + 1 :]
    assert f"a law of the model is broken: cv {cv.high} breaks it; with {cv.path} = {cv.high:g}" in late
    (told,) = json.loads(json.dumps(found.document()))["refusals"]
    assert len(told["points"]) == found.refused
