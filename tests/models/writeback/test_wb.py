"""The inode lists of a writeback context: moves between them, and their order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wbsim.models.interfaces import InodeSync
from wbsim.models.writeback.wb import WritebackContext
from wbsim.sim.engine import Environment
from wbsim.sim.invariants import LawBroken


def context(*inodes: tuple[str, int], per_superblock: bool = False) -> Any:
    """Return a context with *inodes*, each given by its superblock and the time when it was dirtied."""
    wb: Any = WritebackContext(
        "vda",
        SimpleNamespace(),
        SimpleNamespace(wbs=[]),
        per_superblock=per_superblock,  # type: ignore[arg-type]
    )
    for sb, when_ns in inodes:
        wb.add(SimpleNamespace(sb=sb, wb=wb, dirty_pages=1, i_sync=None), when_ns)
    wb.dirty_and_writeback = wb.dirty = len(inodes)
    return wb


def listed(inodes: Any) -> list[tuple[str, int]]:
    """Return the superblock and the time of each inode."""
    return [(inode.sb, inode.dirtied_when) for inode in inodes]


def test_queue_io_moves_expired_inodes_and_leaves_younger_ones() -> None:
    """queue_io moves inodes that were dirtied by 10 to b_io, behind the inodes of b_more_io."""
    wb = context(("a", 5), ("a", 10), ("a", 11))
    wb.b_more_io.append(SimpleNamespace(sb="a", wb=wb, dirtied_when=1, dirty_pages=1, i_sync=None))
    wb.dirty_and_writeback = wb.dirty = 4
    wb.check()
    assert wb.queue_io(10) == 3
    assert listed(wb.b_io) == [("a", 1), ("a", 5), ("a", 10)]
    assert listed(wb.b_dirty) == [("a", 11)]
    assert not wb.b_more_io
    wb.check()


def test_queue_io_groups_inodes_by_superblock() -> None:
    """queue_io sorts inodes by superblock; the superblock of the oldest inode comes first."""
    wb = context(("b", 1), ("a", 2), ("b", 3), ("a", 4))
    wb.queue_io(9)
    assert listed(wb.b_io) == [("b", 1), ("b", 3), ("a", 2), ("a", 4)]
    wb = context(("b", 1), ("a", 2), ("c", 3), ("a", 4), ("b", 5))
    wb.queue_io(9)
    assert listed(wb.b_io) == [("b", 1), ("b", 5), ("a", 2), ("a", 4), ("c", 3)]


def test_lists_per_superblock_leave_inodes_of_others_in_place() -> None:
    """Work on one superblock moves and takes only its inodes; other inodes keep their list and their age."""
    wb = context(("a", 1), ("b", 2), ("a", 3), ("b", 4), ("b", 9), per_superblock=True)
    wb.requeue_io(wb.b_dirty.popleft())
    wb.requeue_io(wb.b_dirty.popleft())
    assert [wb.holds(wb.b_more_io, sb) for sb in ("a", "b", "c", None)] == [True, True, False, True]
    assert not wb.holds(wb.b_io, None)
    assert wb.queue_io(4, "b") == 2
    assert (listed(wb.b_io), listed(wb.b_more_io)) == ([("b", 2), ("b", 4)], [("a", 1)])
    assert listed(wb.b_dirty) == [("a", 3), ("b", 9)]
    assert [wb.holds(wb.b_more_io, sb) for sb in ("a", "b")] == [True, False]
    assert [wb.holds(wb.b_io, sb) for sb in ("a", "b")] == [False, True]
    assert wb.queue_io(4, "a") == 2
    assert listed(wb.b_io) == [("b", 2), ("b", 4), ("a", 1), ("a", 3)]
    assert listed([wb.take("a", 77), wb.take("b", 77), wb.take("a", 77)]) == [("a", 1), ("b", 2), ("a", 3)]
    assert wb.take("a", 77) is None
    assert (listed(wb.b_io), listed(wb.b_dirty)) == ([("b", 4)], [("b", 9)])
    assert wb.queue_io(99) == 1
    assert listed(wb.b_io) == [("b", 4), ("b", 9)]


def test_one_list_for_all_redirties_inodes_of_other_superblocks() -> None:
    """Work on one superblock passes over inodes of others, which count as dirtied again (redirty_tail)."""
    wb = context(("a", 1), ("b", 2), ("a", 3))
    wb.requeue_io(wb.b_dirty.popleft())
    assert wb.holds(wb.b_more_io, "b")
    assert wb.queue_io(5, "b") == 3
    assert listed([wb.take("b", 77)]) == [("b", 2)]
    assert wb.take("b", 78) is None
    assert listed(wb.b_dirty) == [("a", 77), ("a", 78)]


def test_requeue_io_keeps_the_age_and_add_renews_it() -> None:
    """requeue_io puts an inode on b_more_io with its age; add puts it at the tail, dirtied now."""
    wb = context(("a", 1), ("b", 2))
    wb.requeue_io(wb.b_dirty.popleft())
    wb.add(wb.b_dirty.popleft(), 77)
    assert (listed(wb.b_more_io), listed(wb.b_dirty)) == ([("a", 1)], [("b", 77)])


def test_check_raises_for_a_wrongly_listed_inode() -> None:
    """A listed inode is listed once, dirty, of this context and not under writeback, or check raises."""
    for spoil in ("twice", "clean", "elsewhere", "written back"):
        wb = context(("a", 1))
        inode = wb.b_dirty[0]
        if spoil == "twice":
            wb.b_io.append(inode)
        elif spoil == "clean":
            inode.dirty_pages = 0
        elif spoil == "elsewhere":
            inode.wb = context()
        else:
            InodeSync(Environment()).begin(inode)
        with pytest.raises(LawBroken, match=r"^vda: "):
            wb.check()


@pytest.mark.parametrize(("when_ns", "place"), [(0, 0), (1, 1), (2, 1), (3, 2), (9, 3)])
def test_give_back_keeps_the_age_of_an_inode(when_ns: int, place: int) -> None:
    """give_back inserts an inode into b_dirty behind all inodes that are not younger."""
    wb = context(("a", 1), ("b", 3), ("c", 5))
    inode: Any = SimpleNamespace(sb="d", wb=wb, dirty_pages=1, i_sync=None, dirtied_when=when_ns)
    wb.give_back(inode)
    assert list(wb.b_dirty).index(inode) == place
    wb.take_off(inode)
    assert listed(wb.b_dirty) == [("a", 1), ("b", 3), ("c", 5)]
