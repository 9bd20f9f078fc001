"""sync(2) next to writers: pages that are dirty at its call are on disk at its return, and it returns."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.harness import FIO, loop_config, only
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.running.simulate import run_case
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.interfaces import Wb
from wbsim.models.kinds import kinds
from wbsim.models.machine import Machine, build
from wbsim.models.page_cache.pages import DELAYED, DIRTY
from wbsim.models.writeback.context_thread import ContextFlushers
from wbsim.models.writeback.wb import first_context
from wbsim.sim.units import MS

FS_MARK = "fs_mark -S0 -n 4000 -s 4096 -L 2 -D 9 -d a -d b -d c"
FIO_WRITES = (
    f"{FIO} --rw=randwrite --nrfiles=3 --filesize=24m --name=a --directory=/b/c --name=b --directory=/b/d"
)


def dirty_now(machine: Machine) -> tuple[int, list[Any], list[Any]]:
    """Return the pages that ever became dirty, the dirty inodes, and the dirty pages of each file."""
    inodes = [
        inode
        for wb in machine.cache.wbs
        for inode in (
            *wb.b_dirty,
            *wb.b_io,
            *wb.b_more_io,
            *(s.inode for s in wb.i_syncs if s.inode is not None),
        )
    ]
    files = only(machine.mounts).filesystem.layouts()
    return machine.cache.dirtied, inodes, [(file, still_dirty(file)) for file in files]


def still_dirty(file: Any) -> set[int]:
    """Return the pages of *file* that must be written."""
    states = file.pages.states[: file.size]
    return set(((states == DIRTY) | (states == DELAYED)).nonzero()[0].tolist())


def run_with_sync(text: str, at_ns: int) -> tuple[int, Machine]:
    """Run programs that write no page twice, with a sync(2) at *at_ns*, or as soon as an inode is dirty.

    Return the time of the sync (ns), and the machine.
    """
    (case,) = parse(text, "x.toml").cases
    machine = build(case.scenario, 1)
    took: list[int] = []

    def call() -> None:
        dirtied, inodes, files = dirty_now(machine)
        if not inodes:
            machine.env.call_at(machine.env.now + MS // 10, 1, call)
            return
        began_ns = machine.env.now

        def returned() -> None:
            took.append(machine.env.now - began_ns)
            assert machine.cache.written_pages >= dirtied
            assert not [inode for inode in inodes if inode.dirty_pages and not files]
            for file, were_dirty in files:
                assert not were_dirty & still_dirty(file)

        machine.start_sync(returned)

    machine.env.call_at(at_ns, 1, call)
    machine.run()
    assert took, "the sync(2) returned while the programs ran"
    return took[0], machine


@pytest.mark.parametrize("command", [FS_MARK, FIO_WRITES])
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_pages_dirty_at_sync_are_on_disk_at_its_return(kernel: str, command: str) -> None:
    """sync(2) keeps its promise under every kernel while writers dirty more pages.

    To 3.1 these writers write back pages themselves.
    """
    text = loop_config(
        command, dirty_mib=4, kernel=kernel, more="sync_after = false\nmachine.processors.count = 4"
    )
    run_with_sync(text, 300 * MS)


def busy(kernel: str, *more: str) -> str:
    """Return a configuration whose fs_mark keeps the flusher busy for seconds."""
    return loop_config(
        "fs_mark -S0 -n 6000 -s 4096 -L 4 -D 9 -d a -d b -d c", dirty_mib=8, kernel=kernel,
        more="\n".join(["sync_after = false", "machine.processors.count = 4", *more]),
    )  # fmt: skip


@pytest.mark.long
def test_sync_does_not_starve_behind_background_writeback() -> None:
    """A sync takes as long as the writeback of 8 MiB of small files, a tenth of the run.

    If background work does not end early for other work, the sync takes until the end of the run.
    """
    took, machine = run_with_sync(busy("6.18"), 300 * MS)
    assert took < machine.env.now / 4
    with pytest.raises(AssertionError, match="returned while"):
        run_with_sync(busy("6.18", "kernel.writeback.leaves = false"), 300 * MS)


class Dropping(ContextFlushers):
    """Flushers with one context for each device, which drop all queued work."""

    def __init__(self, *, spec: Any, **parts: Any) -> None:
        super().__init__(contexts=lambda _: 1, places=first_context, **parts)

    def queue(self, wb: Wb, work: Any) -> None:  # type: ignore[override]
        """Drop *work*."""


@pytest.mark.parametrize("command", [FS_MARK, FIO_WRITES])
@pytest.mark.parametrize("kernel", ["2.6.34", "3.11", "6.18"])
def test_sync_writes_all_pages_if_flushers_drop_its_work(
    kernel: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sync(2) writes all pages itself if flushers drop its work, like pdflush with only busy threads."""
    per_bdi = kinds("flushers")["per_bdi"]._replace(component=Dropping)
    monkeypatch.setitem(kinds("flushers"), "per_bdi", per_bdi)
    text = loop_config(
        command, dirty_mib=4, kernel=kernel, more="sync_after = false\nmachine.processors.count = 4"
    )
    run_with_sync(text, 300 * MS)


SYNCS = """\
title = "sync beside fs_mark"
[scenario]
machine.like = "loop-vm"
kernel.like = "6.18"
kernel.dirty.dirty_bytes = "8 MiB"
kernel.dirty.dirty_background_bytes = "4 MiB"
filesystem.like = "loop-xfs"
programs.make = "fs_mark -S0 -n 3000 -s 4096 -L 4 -D 9 -d a -d b"
programs.sync = { command = "sync", start = "100 ms" }
"""


def test_sync_programs_run_once_at_once_or_repeatedly() -> None:
    """sync runs once, three times at once, or every 200 ms until fs_mark ends; the wall time is fs_mark's."""
    taken = {}
    for form in ("", ", times = 3", ', every = "200 ms"'):
        (case,) = parse(SYNCS.replace('"100 ms" }', f'"100 ms"{form} }}'), "x.toml").cases
        outcome = run_case(case, 1)
        rounds = [sample for sample in outcome.samples if sample.program == "sync"]
        assert (outcome.wall_time, outcome.files) == (outcome.programs["make"].wall_time, 24_000)
        assert outcome.programs["sync"].files == 0
        taken[form] = [(sample.end_ns - 100 * MS) / MS for sample in rounds]
    assert [len(rounds) > 1 for rounds in taken.values()] == [False, False, True]
    assert taken[""][0] < taken[", times = 3"][0]
    gaps = np.diff(taken[', every = "200 ms"'])
    assert gaps.min() > 30


def test_syncfs_writes_only_its_filesystem() -> None:
    """sync -f of a path, and sync of a file, leave the file on the other disk dirty; sync does not."""
    text = """\
title = "two disks"
[scenario]
machine.like = "loop-vm"
machine.disks.sd = { like = "pm9a3", count = 2 }
kernel.like = "6.18"
mounts.d = { like = "loop-xfs", each = "sd", at = "/d{n}" }
programs.one = "dd if=/dev/zero of=/d0/x bs=1024k count=4"
programs.two = "dd if=/dev/zero of=/d1/x bs=1024k count=4"
programs.sync = { command = "sync", start = "1 s" }
sync_after = false
"""
    dirty = {}
    for command in ("sync", "sync -f /d1", "sync /d1/x", "sync -d /d0/x"):
        (case,) = parse(text.replace('"sync"', f'"{command}"'), "x.toml").cases
        machine = build(case.scenario, 1)
        machine.run()
        dirty[command] = [wb.dirty for wb in machine.cache.wbs]
    assert dirty["sync"] == [0, 0, 0]
    assert dirty["sync -f /d1"] == dirty["sync /d1/x"] == [0, 1024, 0]
    assert dirty["sync -d /d0/x"] == [0, 0, 1024]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            '"sync -f"',
            "'sync -f' has no path, without which sync refuses the option; write sync -f PATH",
        ),
        ('"sync -d"', "'sync -d' has no path, without which sync refuses the option; write sync -d FILE"),
        ('"sync -d -f /x"', "'sync -d -f /x': sync refuses -d and -f together; write one of them"),
        ('{ command = "sync", times = 0 }', "programs.sync.times"),
        ('{ command = "sync", every = "0 s" }', "programs.sync.every"),
    ],
)
def test_wrong_forms_of_sync_are_refused(given: str, message: str) -> None:
    """The error names the command or the key, and gives the right form of a command."""
    text = SYNCS.replace('{ command = "sync", start = "100 ms" }', given)
    with pytest.raises(BadInput, match=re.escape(message)):
        parse(text, "x.toml")


def test_scenario_of_endless_programs_is_refused() -> None:
    """A scenario without a program that ends would never end."""
    text = SYNCS.replace('programs.make = "fs_mark -S0 -n 3000 -s 4096 -L 4 -D 9 -d a -d b"\n', "")
    with pytest.raises(BadInput, match="programs: all programs run without end; give at least one that ends"):
        parse(text.replace('"100 ms" }', '"100 ms", every = "1 s" }'), "x.toml")
