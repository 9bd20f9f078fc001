"""The latencies of write(2) of whole programs, compared with literal ones to the nanosecond.

The jobs of one fio overwrite files that exist, before any writeback begins.  The literal processes have the
times of the machine, and a lock for each file (i_rwsem), from the second process on that opens the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pytest

from tests.literal.clock import Clock, LockCounts, RwSemaphore, Steps, Task
from tests.literal.test_literal import figures_of, latency_of
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import Machine, build
from wbsim.models.scenario import Scenario
from wbsim.sim.units import KIB, PAGE_BYTES

LINE_NS: Final = 90
TEXT: Final = f"""\
title = "jobs that write"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 8
machine.processors.cv = 0
machine.processors.line_own = "0 ns"
machine.processors.line_time = "{LINE_NS} ns"
machine.disks.d.like = "loop"
machine.disks.e.like = "loop"
kernel.like = "6.18"
mounts.x = {{ like = "loop-xfs", disk = "d", at = "/x", size = "4 GiB" }}
mounts.y = {{ like = "loop-ext4", disk = "e", at = "/y", size = "4 GiB" }}
sync_after = false
"""


class Section(NamedTuple):
    """A job of fio: it writes *calls* blocks of *kib* KiB, one after another, to the file at *path*."""

    path: str
    kib: int = 4
    calls: int = 50

    def words(self, name: str) -> str:
        """Return the options of the job."""
        size = self.kib * self.calls
        return f"--name={name} --filename={self.path} --bs={self.kib}k --size={size}k"


class Literal:
    """The processes of *sections*, with the times of *machine*; ``latencies_ns`` has those of each."""

    def __init__(self, scenario: Scenario, machine: Machine, sections: Sequence[Section]) -> None:
        self._clock = Clock(0)
        self._machine = machine
        spec: Any = scenario.programs["w"].workload
        self._cpu = cpu = scenario.machine.processors
        self._user_ns = round(spec.app_time * (cpu.program_scale or cpu.writer_scale))
        fork_ns = round(spec.fork_time * (cpu.program_scale or cpu.writer_scale))
        begin_ns = round(spec.start_time * (cpu.program_scale or cpu.writer_scale)) + spec.idle_time
        self._opens: dict[str, list[int]] = {}
        self._locks: dict[str, RwSemaphore] = {}
        counts = LockCounts()
        self._is_dirty: set[str] = set()
        self.latencies_ns: list[list[int]] = [[] for _ in sections]
        for number, section in enumerate(sections):
            forked_ns = begin_ns + (number + 1) * fork_ns
            self._opens.setdefault(section.path, []).append(forked_ns)
            self._locks[section.path] = RwSemaphore(
                self._clock, counts, cpu.wake_time, LINE_NS, scenario.kernel.rwsem_spin, cpu.waker_time or 0
            )
            task = Task(self._clock, number)
            task.start(self._write(task, section, forked_ns, self.latencies_ns[number]))
        self._clock.run()

    def _write(self, task: Task, section: Section, forked_ns: int, latencies_ns: list[int]) -> Steps:
        """Run the process of *section*, which is forked at *forked_ns*."""
        clock, path, open_ns = self._clock, section.path, self._opens[section.path]
        sb = self._machine.mounts[path[1]]
        mark_ns = round(self._cpu.paths.write.mark_ns * self._cpu.writer_scale)
        pages = section.kib * KIB // PAGE_BYTES
        price_ns = self._machine.process("price").write_ns(pages, sb)
        yield forked_ns
        for _ in range(section.calls):
            is_shared = len(open_ns) > 1 and clock.now >= open_ns[1]
            lock = self._locks[path] if is_shared else None
            yield self._user_ns
            began_ns = clock.now
            if lock is not None:
                yield from lock.down_write(task)
            yield price_ns
            if path not in self._is_dirty:  # __mark_inode_dirty
                self._is_dirty.add(path)
                yield mark_ns
            if lock is not None:
                yield lock.up_write(task)
            latencies_ns.append(clock.now - began_ns)


SECTIONS: Final = {
    "one": [Section("/x/a")],
    "two sections": [Section("/x/a"), Section("/x/b", kib=16)],
    "two mounts": [Section("/x/a"), Section("/y/a", calls=70)],
    "a shared file": [Section("/x/a"), Section("/x/a", calls=80)],
    "a shared file of ext4": [Section("/y/a", kib=64), Section("/y/a", kib=4, calls=300)],
    "three processes": [Section("/x/a", calls=200), Section("/x/a", kib=8, calls=90), Section("/x/a")],
    "two files, one shared": [Section("/x/a", calls=200), Section("/x/b", kib=16), Section("/x/a", kib=8)],
}


@pytest.mark.parametrize("sections", SECTIONS.values(), ids=SECTIONS)
def test_latencies_match_the_literal_ones(sections: Sequence[Section]) -> None:
    """Each call is counted once, and the bins, the sums and the ends of each job are those of the calls."""
    words = " ".join(section.words(f"j{number}") for number, section in enumerate(sections))
    (case,) = parse(f'{TEXT}programs.w = "fio --rw=write --overwrite=1 {words}"\n', "x.toml").cases
    machine = build(case.scenario, 1)
    machine.run()
    program: Any = machine.programs["w"]
    literal = Literal(case.scenario, machine, sections)
    for number, section in enumerate(sections):
        latency = program.jobs_done[f"j{number}"].latencies.write
        assert latency.count == sum(latency.bins().values()) == section.calls
        assert figures_of(latency) == figures_of(latency_of(literal.latencies_ns[number])), f"j{number}"
