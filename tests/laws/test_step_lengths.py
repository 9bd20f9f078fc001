"""The length of a step decides how fast a simulation runs, and nothing else (`models.step_lengths`).

Each case is run with the usual lengths and with others.  Every event of the block layer, of the throttle and
of the flushers happens at the same nanosecond.  Where that does not hold yet, the test is a strict expected
failure, and `MISSED` says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple

import pytest

from tests.harness import FIO, attributes_of
from tests.laws.test_any_scenario import came_to
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import Machine, build
from wbsim.models.scenario import Scenario
from wbsim.models.signals import Signals
from wbsim.models.step_lengths import StepLengths
from wbsim.sim.units import S

ONE: Final = ""
HASH: Final = 'kernel.flusher = { kind = "parallel", by = "hash", contexts = 3 }'
BY_GROUP: Final = 'kernel.flusher = { kind = "parallel", by = "allocation_group" }'


class Case(NamedTuple):
    """A machine that writes files of 4 096 pages at random or, if *sequential*, in order.

    One *flusher* has one file, several have two.
    """

    kernel: str
    filesystem: str
    disk: str
    flusher: str = ONE
    sequential: bool = False

    def name(self) -> list[str]:
        """Return the parts of a name that no other case has."""
        several = {ONE: [], HASH: ["hash"], BY_GROUP: ["by-group"]}[self.flusher]
        order = ["sequential"] if self.sequential else []
        return [self.kernel, self.filesystem, self.disk, *several, *order]

    def scenario(self) -> Scenario:
        """The scenario, in which a part of the files is written back while they are written."""
        rw, jobs = "write" if self.sequential else "randwrite", 2 if self.flusher else 1
        (case,) = parse(
            f"""\
title = "files of 4 096 pages"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 4
machine.disks.d.like = "{self.disk}"
kernel.like = "{self.kernel}"
kernel.dirty.dirty_bytes = "8 MiB"
kernel.dirty.dirty_background_bytes = "4 MiB"
{self.flusher}
sync_after = true
mounts.m = {{ like = "{self.filesystem}", disk = "d", at = "/m", size = "4 GiB" }}
programs.p = "{FIO} --rw={rw} --numjobs={jobs} --filesize=16m --name=a --directory=/m"
""",
            "x.toml",
        ).cases
        return case.scenario


CASES: Final = (
    Case("2.6.29", "loop-xfs", "sata-disk"),
    Case("2.6.30", "loop-ext4", "loop"),
    Case("2.6.32", "loop-xfs", "sata-ssd"),
    Case("2.6.34", "loop-ext4", "sata-disk"),
    Case("2.6.39", "loop-xfs", "loop"),
    Case("3.1", "loop-ext4", "sata-ssd"),
    Case("3.11", "loop-xfs", "sata-ssd"),
    Case("4.9", "loop-ext4", "pm9a3"),
    Case("5.10", "loop-xfs", "bm1743"),
    Case("6.18", "loop-xfs", "pm9a3"),
    Case("6.18", "loop-ext4", "pm9a3"),
    Case("6.18", "loop-ext4", "sata-disk"),
    Case("6.18", "loop-xfs", "pm9a3", HASH),
    Case("6.18", "loop-ext4", "bm1743", HASH),
    Case("6.18", "loop-xfs", "loop", BY_GROUP),
    Case("6.18", "loop-xfs", "pm9a3", sequential=True),
)
USUAL: Final = StepLengths()
OTHERS: Final[dict[str, tuple[int, ...]]] = {
    "bios": (1, 2, 7, 64),
    "nonblocking_bios": (1, 2, 7, 64, 1_024),
    "ahead_ns": (0, 1_000 * S),
    "factors": (1, 2, 7, 64, 1_024),
    "calls": (1, 2, 7, 64, 1_024),
}
"""The other lengths of each kind."""
MISSED: Final = {
    "bios": "bios of a step leave when all of its time has passed, and its pages count from its beginning",
    "nonblocking_bios": "whether the queue is congested is asked once a step",
    "ahead_ns": "a step takes pages, blocks and locks before the clock is there",
    "factors": "a step ends with the factors, and two readers take whole blocks of one stream",
    "calls": "the calls of a burst are one event, and share one random factor",
}
"""Why the law does not hold for a kind of length."""
SHORT: Final = StepLengths(bios=1, nonblocking_bios=1, ahead_ns=0, factors=1)
"""The shortest steps of the flushers."""


def cells() -> Iterator[Any]:
    """Each case with each kind of length that it uses."""
    for case in CASES:
        of_ext4 = case.filesystem == "loop-ext4"
        pdflush = case.kernel in ("2.6.29", "2.6.30")
        used = {"bios": of_ext4, "factors": of_ext4, "nonblocking_bios": of_ext4 and pdflush}
        used |= {"ahead_ns": of_ext4 and bool(case.flusher)}
        for kind in OTHERS:
            if used.get(kind, True):
                marks = pytest.mark.xfail(raises=Differs, strict=True, reason=MISSED[kind])
                yield pytest.param(case, kind, marks=marks, id=f"{'-'.join(case.name())}-{kind}")


class Differs(AssertionError):
    """An event that is another one, or comes at another time."""


def seen(fields: dict[str, Any]) -> Iterator[Any]:
    """Yield what a tracepoint would print of *fields*."""
    for name, value in fields.items():
        match name:
            case "bio":
                yield value.start_sector, value.end_sector, value.op
            case "request":
                yield value.start_sector, value.end_sector, value.op, value.merges
            case "requests":
                yield [(of.start_sector, of.end_sector) for of in value]
            case "inode":
                yield value.wb.name, value.dirty_pages
            case "task":
                yield value.name
            case _:
                yield value


def watched(scenario: Scenario, lengths: StepLengths, expected: list[Any] | None = None) -> list[Any]:
    """Return the events of a run, and what it came to.

    Raises:
        Differs: at the first event that is not the *expected* one.
    """
    signals, events = Signals(), list[Any]()
    machine: Machine = build(scenario, 1, signals=signals, lengths=lengths)

    def note(event: Any) -> None:
        at = len(events)
        events.append(event)
        if expected is not None and (at >= len(expected) or expected[at] != event):
            there = expected[at] if at < len(expected) else "nothing"
            raise Differs(f"{lengths}: event {at} is {event}; it was {there}")

    def hear(name: str, **fields: Any) -> None:
        note((machine.env.now, name, *seen(fields)))

    for name in attributes_of(signals):
        getattr(signals, name).observers.append(hear)
    machine.run()
    note(came_to(machine))
    return events


@cache
def usual(case: Case) -> list[Any]:
    """The events of *case* with the usual lengths."""
    return watched(case.scenario(), USUAL)


@pytest.mark.parametrize(("case", "kind"), list(cells()))
def test_a_step_may_have_any_length(case: Case, kind: str) -> None:
    """The lengths of all other kinds are the usual ones."""
    expected = usual(case)
    for length in OTHERS[kind]:
        watched(case.scenario(), replace(USUAL, **{kind: length}), expected)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.filesystem == "loop-xfs"], ids=lambda case: "-".join(case.name())
)
def test_a_flusher_of_xfs_may_have_steps_of_any_length(case: Case) -> None:
    """XFS has no such steps: an event is one transaction, or one bio."""
    watched(case.scenario(), SHORT, usual(case))


@pytest.mark.parametrize(
    ("kind", "length"),
    [("bios", 0), ("nonblocking_bios", 0), ("ahead_ns", -1), ("factors", 0), ("calls", 0)],
)
def test_a_length_with_which_nothing_goes_on_is_refused(kind: str, length: int) -> None:
    """One more than that is taken."""
    with pytest.raises(ValueError, match=f"the step length {kind} is {length}: .* at least {length + 1}"):
        replace(USUAL, **{kind: length})
    assert getattr(replace(USUAL, **{kind: length + 1}), kind) == length + 1
