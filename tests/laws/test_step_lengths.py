"""The length of a step decides how fast a simulation runs, and nothing else (`models.step_lengths`).

Each case runs with the usual lengths and with other lengths.  Every event of the block layer, of the throttle
and of the flushers happens at the same nanosecond.  `make fuzz` draws scenarios and lengths
(tests/laws/test_any_scenario.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from random import Random
from typing import Any, Final, NamedTuple

import pytest

from tests.harness import FIO, attributes_of
from tests.laws.test_any_scenario import came_to
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import WATCHING, Machine, build
from wbsim.models.scenario import Scenario
from wbsim.models.step_lengths import StepLengths
from wbsim.models.tracepoints import Signals

ONE: Final = ""
HASH: Final = 'kernel.flusher = { kind = "parallel", by = "hash", contexts = 3 }'
BY_GROUP: Final = 'kernel.flusher = { kind = "parallel", by = "allocation_group" }'


class Case(NamedTuple):
    """A machine that writes files of 4 096 pages at random or, if *sequential*, in order.

    With a *depth*, so many writes of io_uring are in flight.  One *flusher* has one file, several have two.
    """

    kernel: str
    filesystem: str
    disk: str
    flusher: str = ONE
    sequential: bool = False
    depth: int = 0

    def name(self) -> list[str]:
        """Return the parts of a name that no other case has."""
        several = {ONE: [], HASH: ["hash"], BY_GROUP: ["by-group"]}[self.flusher]
        order = ["sequential"] if self.sequential else ["io_uring"] if self.depth else []
        return [self.kernel, self.filesystem, self.disk, *several, *order]

    def scenario(self) -> Scenario:
        """Return a scenario in which files are written back while programs write them."""
        rw, jobs = "write" if self.sequential else "randwrite", 2 if self.flusher else 1
        engine = f" --ioengine=io_uring --iodepth={self.depth} --nrfiles=3" if self.depth else ""
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
programs.p = "{FIO} --rw={rw} --numjobs={jobs} --filesize=16m{engine} --name=a --directory=/m"
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
    Case("6.18", "loop-xfs", "pm9a3", depth=8),
    Case("6.18", "loop-ext4", "pm9a3", depth=8),
)
USUAL: Final = StepLengths()
CALLS: Final = (1, 2, 7, 64, 255, 1_024)
"""The other numbers of calls in one event."""
CUTS: Final = 300
"""The instants at which a run is cut."""


class Differs(AssertionError):
    """An event differs from the expected one, or comes at another time."""


def seen(fields: dict[str, Any]) -> Iterator[Any]:
    """Yield the values that a tracepoint would print of *fields*."""
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


def watched(
    scenario: Scenario, lengths: StepLengths, expected: list[Any] | None = None, cuts: Iterable[int] = ()
) -> list[Any]:
    """Return the events of a run, and its figures.  At the *cuts* (ns), an observer reads the machine.

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
    for cut_ns in cuts:
        machine.env.call_at(cut_ns, WATCHING, lambda: came_to(machine))
    machine.run()
    note(came_to(machine))
    return events


@cache
def usual(case: Case) -> list[Any]:
    """Return the events of *case* with the usual lengths."""
    return watched(case.scenario(), USUAL)


def name_of(case: Case) -> str:
    """Return the name of *case*."""
    return "-".join(case.name())


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_any_number_of_calls_may_be_one_event(case: Case) -> None:
    """The kernel's events do not depend on how many calls are joined into one event of the simulation."""
    expected = usual(case)
    for calls in CALLS:
        watched(case.scenario(), StepLengths(calls), expected)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_run_may_be_observed_at_any_instant(case: Case) -> None:
    """An event of an observer, between any two events, changes no other event."""
    expected = usual(case)
    last_ns, random = expected[-2][0], Random(name_of(case))
    watched(case.scenario(), USUAL, expected, [random.randrange(last_ns) for _ in range(CUTS)])


def test_event_without_a_call_is_refused() -> None:
    """An event has at least one call."""
    with pytest.raises(ValueError, match="the step length calls is 0; give at least 1"):
        StepLengths(calls=0)
    assert StepLengths(calls=1).calls == 1
