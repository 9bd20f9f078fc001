"""What it takes to give pages their blocks, and to convert what was written."""

from __future__ import annotations

from wbsim.models.filesystems.dice import Dice
from wbsim.models.filesystems.files import PagedFile
from wbsim.models.filesystems.shared_lines import SharedLines
from wbsim.models.filesystems.spec import FlusherCosts
from wbsim.sim.engine import Task
from wbsim.sim.sync import HandOff


class MapCosts:
    """The times of an allocation and of the conversion of a range in a file whose inode holds *extents*.

    An allocation takes ``group_ns`` more under the lock of its group.  ``dice`` vary the time of allocations,
    which is ``extent_map_ns`` while the inode holds all extents.  Each is one operation on the *lines*.  The
    lines of a file come from another processor as *hand_off* says.
    """

    def __init__(
        self,
        costs: FlusherCosts,
        extents: int,
        dice: Dice,
        hand_off: HandOff,
        group_ns: int = 0,
        lines: SharedLines | None = None,
    ) -> None:
        self.group_ns = group_ns
        self.dice = dice
        self._hand_off = hand_off
        self._map_lines, self._range_lines = costs.map_lines or 0, costs.ioend_lines or 0
        self._lines = lines
        self._page_ns, self._folio_ns = costs.page_ns, costs.folio_ns or 0
        self._extents = extents
        self.extent_map_ns, self._range_ns = costs.map_ns, costs.ioend_ns
        self._tree_map_ns = costs.map_ns if costs.tree_map_ns is None else costs.tree_map_ns
        self._tree_range_ns = costs.ioend_ns if costs.tree_ioend_ns is None else costs.tree_ioend_ns
        self._map_locked_ns, self._range_locked_ns = costs.map_locked_ns, costs.ioend_locked_ns
        self.end_folio_ns = 0 if costs.end_folio_ns is None else costs.end_folio_ns

    def map_ns(self, extents: int) -> int:
        """Return the time of an allocation in a file of *extents* extents, without its group's part."""
        return self.extent_map_ns if extents <= self._extents else self._tree_map_ns

    def run_map_ns(self) -> tuple[int, int]:
        """Return the times of an allocation for a file of one run: its own, and what its group adds."""
        factor = self.dice.throw()
        return int(self.extent_map_ns * factor), int(self.group_ns * factor)

    def varied_map_ns(self, extents: int) -> tuple[int, int]:
        """Return the times of an allocation in a file of *extents* extents: its own, and the group's part."""
        factor = self.dice.throw()
        return int(self.map_ns(extents) * factor), int(self.group_ns * factor)

    def map_locked_ns(self, map_ns: int) -> int:
        """Return the part of an allocation of *map_ns* that passes under the inode's lock."""
        locked_ns, whole_ns = self._map_locked_ns, self.extent_map_ns
        return map_ns if locked_ns is None or not whole_ns else map_ns * locked_ns // whole_ns

    def range_locked_ns(self, range_ns: int) -> int:
        """Return the part of a conversion of *range_ns* that passes under the inode's lock."""
        locked_ns, whole_ns = self._range_locked_ns, self._range_ns
        return range_ns if locked_ns is None or not whole_ns else range_ns * locked_ns // whole_ns

    def page_ns(self, folio_pages: int) -> int:
        """Of a page, and its part of a folio of so many, that is walked."""
        return self._page_ns + self._folio_ns // folio_pages

    def range_ns(self, extents: int) -> int:
        """Return the time of a conversion in a file of *extents* extents, without its group's part."""
        return self._range_ns if extents <= self._extents else self._tree_range_ns

    def moved_map_ns(self, file: PagedFile, task: Task) -> int:
        """Return the time to get the lines of *file* for an allocation that *task* begins now."""
        return self._moved_ns(file, task, self._map_lines)

    def moved_range_ns(self, file: PagedFile, task: Task) -> int:
        """Return the time to get the lines of *file* for a conversion that *task* begins now."""
        return self._moved_ns(file, task, self._range_lines)

    def _moved_ns(self, file: PagedFile, task: Task, lines: int) -> int:
        last, file.cpu = file.cpu, task.cpu
        if last in (-1, task.cpu):
            return 0
        of = self._hand_off
        return lines * of.line(of.node(last), of.node(task.cpu))

    def lines_ns(self, task: Task) -> int:
        """Return what the log's cache lines add to an allocation or a conversion that *task* begins now."""
        return 0 if self._lines is None else self._lines.operation_ns(task)
