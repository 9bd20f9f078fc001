"""What it takes to give pages their blocks, and to convert what was written."""

from __future__ import annotations

from wbsim.models.filesystems.dice import Dice
from wbsim.models.filesystems.shared_lines import SharedLines
from wbsim.models.filesystems.spec import FlusherCosts
from wbsim.sim.engine import Task


class MapCosts:
    """What an allocation and the conversion of a range take in a file whose inode holds up to *extents*;
    each takes ``group_ns`` more under the lock of its group, of which a conversion tells.  ``dice`` vary the
    time of allocations, which is ``extent_map_ns`` while the inode holds all extents.  On the *lines*,
    each is an operation more.
    """

    def __init__(
        self,
        costs: FlusherCosts,
        extents: int,
        dice: Dice,
        group_ns: int = 0,
        lines: SharedLines | None = None,
    ) -> None:
        self.group_ns = group_ns
        self.dice = dice
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

    def lines_ns(self, task: Task) -> int:
        """Return what the log's cache lines add to an allocation or a conversion that *task* begins now."""
        return 0 if self._lines is None else self._lines.operation_ns(task)
