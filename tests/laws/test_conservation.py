"""Pages, requests, blocks, log bytes and processor time are conserved, and every run checks this."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.harness import FIO, loop_config, only
from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.running.simulate import run_case
from wbsim.models.bio import Bio, Request
from wbsim.models.filesystems.blocks import Free
from wbsim.models.filesystems.xfs.log import MetaBuffer
from wbsim.models.interfaces import InodeSync
from wbsim.models.machine import Machine, build
from wbsim.models.page_cache.pages import DELAYED, DIRTY, MAPPED
from wbsim.sim.invariants import LawBroken

PAGED = f"{FIO} --rw=randwrite --nrfiles=3 --filesize=8m --name=a"
SMALL = "fs_mark -S0 -n 400 -s 8192 -L 2 -D 9 -d a -d b"


def run(command: str, filesystem: str = "loop-xfs") -> Machine:
    """Run *command* without sync(2), so that the machine is in the middle of writeback at its end."""
    more = 'sync_after = false\nkernel.writeback.interval = "20 ms"\nkernel.writeback.expire = "10 ms"'
    text = loop_config(command, dirty_mib=16, filesystem=filesystem, more=more)
    (case,) = parse(text, "x.toml").cases
    machine = build(case.scenario, 1)
    machine.run()
    return machine


def filesystem(machine: Machine) -> Any:
    """Return the only filesystem."""
    return only(machine.mounts).filesystem


def largest(machine: Machine) -> Any:
    """Return the file with the most pages."""
    return max(filesystem(machine).layouts(), key=lambda file: file.size)


def add(what: Callable[[Machine], Any], name: str, by: int) -> Callable[[Machine], None]:
    """Return a function that adds *by* to the counter *name* of a part of a machine."""

    def spoil(machine: Machine) -> None:
        part = what(machine)
        setattr(part, name, getattr(part, name) + by)

    return spoil


def wb(machine: Machine) -> Any:
    """Return the only context."""
    (context,) = machine.cache.wbs
    return context


def queue(machine: Machine) -> Any:
    """Return the only queue."""
    return only(machine.queues)


def lists_twice(machine: Machine) -> None:
    wb(machine).b_dirty.append(wb(machine).b_dirty[0])


def forgets_an_inode(machine: Machine) -> None:
    """Take an inode off its list, and let the flusher sleep."""
    wb(machine).b_dirty.popleft()
    flushers: Any = machine.flushers
    flushers._threads[wb(machine)]._asleep = True


def lists_while_written(machine: Machine) -> None:
    InodeSync(machine.env).begin(wb(machine).b_dirty[0])


def lists_a_clean_one(machine: Machine) -> None:
    inode = wb(machine).b_dirty[0]
    wb(machine).dirty -= inode.dirty_pages
    wb(machine).dirty_and_writeback -= inode.dirty_pages
    inode.dirty_pages = 0


def loses_a_dirty_page(machine: Machine) -> None:
    file = next(file for file in filesystem(machine).layouts() if file.dirty)
    states = file.pages.states
    at = int(np.flatnonzero(states & DELAYED)[0])
    states[at] = MAPPED if states[at] == DIRTY else 0


def gives_a_block_twice(machine: Machine) -> None:
    first, second = filesystem(machine).layouts()[:2]
    ours, theirs = (np.flatnonzero(file.pages.states == MAPPED)[0] for file in (first, second))
    block = int(first.pages.blocks[ours]) + first.base
    second.pages.blocks[theirs] = second.reach(block, 1)


def goes_beyond_the_end(machine: Machine) -> None:
    file, blocks = largest(machine), filesystem(machine).placement.blocks
    file.pages.blocks[np.flatnonzero(file.pages.states == MAPPED)[0]] = file.reach(blocks, 1)


def frees_what_is_used(machine: Machine) -> None:
    file = largest(machine)
    page = np.flatnonzero(file.pages.states == MAPPED)[0]
    block = int(file.pages.blocks[page]) + file.base
    found = filesystem(machine)
    if found.group_label == "group":  # isinstance is not allowed: CONTRIBUTING.md
        found.placement.mballoc.give_back(block, 1)
    else:
        found.placement.groups[block // found.group_blocks].free.give_back(block % found.group_blocks, 1)


def free_in_one_tree(machine: Machine) -> None:
    space = filesystem(machine).placement.groups[0].free.with_room(1)
    space.by_block.rows.values[space.by_block.order[0, 0], 0] -= 1


def ail_out_of_order(machine: Machine) -> None:
    log = filesystem(machine).metadata.log
    log._head += 512
    log.ail = {MetaBuffer(8, 8): log.written_bytes, MetaBuffer(16, 8): 0}
    log._set_room()


def full_too_early(machine: Machine) -> None:
    filesystem(machine).metadata.log.full = True


def journal_forgets(machine: Machine) -> None:
    filesystem(machine).metadata.journal.used_blocks = -1


def lost_processor(machine: Machine) -> None:
    machine.processors._free.pop()


def works_unseen(machine: Machine) -> None:
    machine.processors._used_ns += 1


def waits_beside_an_idle_one(machine: Machine) -> None:
    machine.processors._queues[0].keep(machine.env.task("somebody"), 0)
    machine.processors._ready_count += 1
    machine.processors._loose += 1


def waits_nowhere(machine: Machine) -> None:
    machine.processors._ready_count += 1


def writes_uncounted(machine: Machine) -> None:
    queue(machine).wbt.count = queue(machine)._async.count - 1


def writes_too_many(machine: Machine) -> None:
    queue(machine).wbt.count = queue(machine).wbt.most + 1


def finds_who_has_gone(machine: Machine) -> None:
    queue(machine).elevator._by_end[8] = Request(Bio(0, 8))


def charged_for_nothing(machine: Machine) -> None:
    only(machine.programs).family.children[0].spent.user += 1  # type: ignore[attr-defined]


def sleeps_unseen(machine: Machine) -> None:
    only(machine.programs).family.children[0].task.slept_ns["a request"] = -1  # type: ignore[attr-defined]


XFS: list[tuple[str, str, Callable[[Machine], None], str]] = [
    (PAGED, "loop-xfs", lists_twice, "an inode is listed twice"),
    (PAGED, "loop-xfs", forgets_an_inode, "its flusher sleeps"),
    (SMALL, "loop-xfs", lists_while_written, "lists an inode that is being written back"),
    (SMALL, "loop-xfs", lists_a_clean_one, "lists a clean inode"),
    (PAGED, "loop-xfs", add(wb, "dirty_and_writeback", 1), "under writeback: "),
    (PAGED, "loop-xfs", add(wb, "dirty", 1), "pages"),
    (PAGED, "loop-xfs", add(wb, "written_pages", 10**6), "pages became clean"),
    (PAGED, "loop-xfs", loses_a_dirty_page, "a file counts"),
    (PAGED, "loop-ext4", loses_a_dirty_page, "a file counts"),
    (PAGED, "loop-xfs", gives_a_block_twice, "blocks belong to two files"),
    (PAGED, "loop-ext4", gives_a_block_twice, "blocks belong to two files"),
    (PAGED, "loop-xfs", goes_beyond_the_end, "an extent lies outside"),
    (PAGED, "loop-ext4", goes_beyond_the_end, "an extent lies outside"),
    (PAGED, "loop-xfs", frees_what_is_used, "to a file and the free space"),
    (PAGED, "loop-ext4", frees_what_is_used, "to a file and the free space"),
    (PAGED, "loop-xfs", free_in_one_tree, "blocks are counted, its extents have"),
    (SMALL, "loop-xfs", ail_out_of_order, "in the order in which the items were logged"),
    (SMALL, "loop-xfs", full_too_early, "log: full is"),
    (SMALL, "loop-xfs", add(lambda m: filesystem(m).metadata.log, "_head", 1), "whole sectors"),
    (SMALL, "loop-ext4", journal_forgets, "blocks are used"),
    (SMALL, "loop-ext4", add(lambda m: filesystem(m).metadata.journal, "credits", -1_000),
     "neither may be negative"),
    (PAGED, "loop-xfs", add(lambda m: queue(m).stat, "in_flight", 1_000), "must have a place in the pool"),
    (PAGED, "loop-xfs", add(lambda m: queue(m)._sync, "count", -1), "freed twice|place in the pool"),
    (PAGED, "loop-xfs", lost_processor, "each seat must have one owner"),
    (PAGED, "loop-xfs", waits_beside_an_idle_one, "waits in the queue of an idle processor"),
    (PAGED, "loop-xfs", waits_nowhere, "tasks wait, the queues have"),
    (PAGED, "loop-xfs", writes_uncounted, "writeback throttling must count"),
    (PAGED, "loop-xfs", writes_too_many, "admit at most its limit"),
    (PAGED, "loop-xfs", finds_who_has_gone, "the request at end_sector 8 must wait there"),
    (PAGED, "loop-xfs", add(lambda m: queue(m).stat, "busy_ns", 10**12), "queue was in use for"),
    (PAGED, "loop-xfs", works_unseen, "ns idle must be"),
    (PAGED, "loop-xfs", charged_for_nothing, "differs from elapsed time"),
    (PAGED, "loop-xfs", sleeps_unseen, "differs from elapsed time"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "kind", "spoil", "law"), XFS, ids=lambda value: getattr(value, "__name__", "")
)
def test_broken_law_is_named(command: str, kind: str, spoil: Callable[[Machine], None], law: str) -> None:
    """A machine that keeps all laws breaks one of them when a part is lost, or counted twice."""
    machine = run(command, kind)
    assert wb(machine).b_dirty
    assert wb(machine).written_pages
    machine.check()
    spoil(machine)
    with pytest.raises(LawBroken, match=law):
        machine.check()


def test_broken_law_of_a_filesystem_names_the_mount() -> None:
    """The error begins with the name of the mount."""
    machine = run(PAGED)
    loses_a_dirty_page(machine)
    (name,) = machine.mounts
    with pytest.raises(LawBroken, match=f"^{name}: a file counts"):
        machine.check()


def test_free_blocks_are_disjoint_and_listed_by_largest_buddy() -> None:
    """ext4 has three laws of free blocks: lists by largest buddy, separate runs, and the count of blocks."""
    machine = run(PAGED, "loop-ext4")
    mballoc = filesystem(machine).placement.mballoc
    number, group = next(iter(mballoc.groups.items()))
    mballoc.of_order[group.order].remove(number)
    with pytest.raises(LawBroken, match="its largest buddy has"):
        mballoc.check()
    mballoc.of_order[group.order].add(number)
    mballoc.check()
    run_ = next(iter(group.runs()))
    group._runs[run_.first + run_.size - 1] = 1
    with pytest.raises(LawBroken, match="its runs must have used blocks between them"):
        mballoc.check()
    del group._runs[run_.first + run_.size - 1]
    mballoc._free[0] += 1
    with pytest.raises(LawBroken, match="blocks are counted, its runs have"):
        mballoc.check()
    assert Free(run_.first + group.first_block, run_.size) in list(mballoc.extents())


def test_run_that_breaks_a_law_fails_and_names_the_law(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command ends with status 70 and one line, and prints no figures."""

    def broken(_: Machine) -> None:
        raise LawBroken("a page was lost")

    monkeypatch.setattr(Machine, "check", broken)
    assert main(["run", "--fs-mark", "fs_mark -S0 -n 10 -s 4096 -L 2 -d a"]) == 70
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "wbsim: variant base: a page was lost; this is a fault of wbsim; please report it with the command"
        " and the configuration\n"
    )


@pytest.mark.parametrize("kernel", ["2.6.39", "3.11", "6.17"])
@pytest.mark.parametrize("size", [128, 256, 1_024])
def test_file_that_grows_during_allocation_keeps_its_pages(size: int, kernel: str) -> None:
    """Pages that a program writes during an allocation stay dirty, so the laws at the end of the run hold."""
    text = loop_config(
        f"fs_mark -S0 -n 30 -s {size << 10} -L 2 -d a -d b -d c -d d", dirty_mib=2, kernel=kernel
    )
    (case,) = parse(text, "x.toml").cases
    assert run_case(case, 1).files == 240
