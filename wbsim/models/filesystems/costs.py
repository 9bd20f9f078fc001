"""The times of allocations and conversions: of paths, random factors, and cache lines that move.

The lines that all files share are lines of the log (`SharedLines`).  The lines of one file move with its
transactions.
"""

from __future__ import annotations

from math import exp
from typing import Final

from wbsim.models.filesystems.files import PagedFile
from wbsim.models.filesystems.spec import FlusherCosts
from wbsim.models.parts import Parts
from wbsim.sim.engine import Environment, Task
from wbsim.sim.streams import Draws
from wbsim.sim.sync import HandOff


class SharedLines:
    """Cache lines that all threads which allocate and convert write: heads and counters of a log.

    A line is a resource with one owner and a queue, like a lock.  All operations write the lines in the same
    order, so a task that comes first to the first line comes first to all of them.  The time at the lines is
    therefore known when an operation begins, and no event is needed for it.

    An operation writes the lines *writes* times each, in this order.  A write takes *own_ns* on the processor
    that wrote the line last, and *far_ns* if the line comes from another processor.  If a line is busy when a
    task needs it, each write fetches the line from another processor.

    NOTE: an operation of the kernel writes the lines when it reserves log space, when its transaction rolls
    and when it commits.  Here it writes all of them at its beginning.  A free line may have moved before the
    later writes, too.  Other files have operations at the rate since this file's last operation; operations
    on one file exclude each other.
    """

    def __init__(self, env: Environment, writes: tuple[int, ...], own_ns: int, far_ns: int) -> None:
        self._env = env
        self._writes = list(writes)
        self._own_ns, self._far_ns = own_ns, far_ns
        self._alone_ns = sum(writes) * own_ns
        self._free_ns = [0] * len(writes)
        self._last_cpu = [-1] * len(writes)
        self._operations = 0

    def operation_ns(self, task: Task, file: PagedFile, lasts_ns: int) -> int:
        """Return the time (ns) that the lines add to an operation on *file*, which *task* begins now.

        The operation lasts *lasts_ns*, writes to the lines included, while the lines stay on the task's
        processor; the result is 0 then.  Afterwards each line is on that processor, and busy until its writes
        end.  Call this once for each operation, because ``file.log_operation`` counts it.  The caller waits
        for the time, and accounts for it.
        """
        own_ns, far_ns, cpu, now = self._own_ns, self._far_ns, task.cpu, self._env.now
        probability = self._probability(file, lasts_ns)
        at_ns = now
        for line in range(len(self._writes)):
            writes, free_ns = self._writes[line], self._free_ns[line]
            if free_ns > at_ns:
                at_ns = free_ns + writes * far_ns
            else:
                moves = (self._last_cpu[line] != cpu) + (writes - 1) * probability
                at_ns += int(writes * own_ns + moves * (far_ns - own_ns))
            self._free_ns[line] = at_ns
            self._last_cpu[line] = cpu
        return at_ns - now - self._alone_ns

    def _probability(self, file: PagedFile, lasts_ns: int) -> float:
        """Return the probability that another file's operation takes a line between two writes for *file*.

        Each of the operations that begin within *lasts_ns* writes the line as often as this one.
        """
        now, previous = self._env.now, file.log_operation
        operations = 0 if previous is None else self._operations - previous[0]
        self._operations += 1
        file.log_operation = self._operations, now
        if previous is None or previous[1] == now:
            return 0.0
        return 1.0 - exp(-operations * lasts_ns / (now - previous[1]))


_BLOCK: Final = 4_096
"""The number of factors that are drawn at once, because a draw of one takes a microsecond."""


class RandomFactors:
    """Factors that vary the time of allocations, from the stream *name*, which no other caller may use."""

    __slots__ = ("_draws",)

    def __init__(self, parts: Parts, name: str) -> None:
        self._draws = Draws(parts.variations(name), _BLOCK)

    def next(self) -> float:
        """Return the next factor, by which a time is multiplied (1 in the mean)."""
        return self._draws.next()


class MapCosts:
    """The times of an allocation and of the conversion of a range.

    The inode of a file holds *extents* extents.  An allocation takes ``group_ns`` more under the lock of its
    group.  ``factors`` vary the time of allocations, which is ``extent_map_ns`` while the inode holds all
    extents.  A file with more extents has the ``tree_`` times of *costs*.  Each allocation or conversion is
    one operation on the *lines*.  The lines of a file come from another processor as *hand_off* says.
    ``end_folio_ns``: the time for each folio that a worker makes clean.

    No time passes in the methods: the caller waits for the times that they return, and accounts for them.
    """

    def __init__(
        self,
        costs: FlusherCosts,
        extents: int,
        factors: RandomFactors,
        hand_off: HandOff,
        group_ns: int = 0,
        lines: SharedLines | None = None,
    ) -> None:
        self.group_ns = group_ns
        self.factors = factors
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
        """Return the mean time (ns) of an allocation in a file of *extents* extents, without ``group_ns``."""
        return self.extent_map_ns if extents <= self._extents else self._tree_map_ns

    def run_map_ns(self) -> tuple[int, int]:
        """Draw two times (ns) for a file of one run: that of an allocation, and ``group_ns`` after it.

        One factor varies both.  The second is for the update of XFS's reverse mapping, which takes the
        group's lock anew; 0: the filesystem has none.
        """
        factor = self.factors.next()
        return int(self.extent_map_ns * factor), int(self.group_ns * factor)

    def varied_map_ns(self, extents: int, more_ns: int = 0) -> tuple[int, int]:
        """Draw the two times (ns) of `run_map_ns` for an allocation in a file of *extents* extents.

        *more_ns* is added to the first before the factor varies it.
        """
        factor = self.factors.next()
        return int((self.map_ns(extents) + more_ns) * factor), int(self.group_ns * factor)

    def map_locked_ns(self, map_ns: int) -> int:
        """Return the part (ns) of an allocation of *map_ns* that passes under the inode's lock.

        The share is that of ``map_locked_ns`` in ``map_ns`` of `FlusherCosts`; without the former, all of it.
        """
        locked_ns, whole_ns = self._map_locked_ns, self.extent_map_ns
        return map_ns if locked_ns is None or not whole_ns else map_ns * locked_ns // whole_ns

    def range_locked_ns(self, range_ns: int) -> int:
        """Return the part (ns) of a conversion of *range_ns* that passes under the inode's lock.

        The share is that of ``ioend_locked_ns`` in ``ioend_ns`` of `FlusherCosts`; without the former, all.
        """
        locked_ns, whole_ns = self._range_locked_ns, self._range_ns
        return range_ns if locked_ns is None or not whole_ns else range_ns * locked_ns // whole_ns

    def page_ns(self, folio_pages: int) -> int:
        """Return the time (ns) to walk over one page, with its part of the time of its folio.

        The folio has *folio_pages* pages, so the part is ``folio_ns`` / *folio_pages*.
        """
        return self._page_ns + self._folio_ns // folio_pages

    def range_ns(self, extents: int) -> int:
        """Return the mean time (ns) of a conversion in a file of *extents* extents.

        The part under the lock of a group is left out; the caller adds it.
        """
        return self._range_ns if extents <= self._extents else self._tree_range_ns

    def moved_map_ns(self, file: PagedFile, task: Task) -> int:
        """Return the time (ns) to fetch the lines of *file* for an allocation that *task* begins now.

        The lines, ``map_lines`` of `FlusherCosts`, are on the task's processor then: ``file.cpu`` is set.
        Returns 0 if they were there before, or if this is the file's first operation.
        """
        return self._moved_ns(file, task, self._map_lines)

    def moved_range_ns(self, file: PagedFile, task: Task) -> int:
        """Return the time (ns) to fetch the lines of *file* for a conversion that *task* begins now.

        The lines, ``ioend_lines`` of `FlusherCosts`, are on the task's processor then: ``file.cpu`` is set.
        Returns 0 if they were there before, or if this is the file's first operation.
        """
        return self._moved_ns(file, task, self._range_lines)

    def _moved_ns(self, file: PagedFile, task: Task, lines: int) -> int:
        last, file.cpu = file.cpu, task.cpu
        if last in (-1, task.cpu):
            return 0
        hand_off = self._hand_off
        return lines * hand_off.line(hand_off.node(last), hand_off.node(task.cpu))

    def lines_ns(self, file: PagedFile, task: Task, lasts_ns: int) -> int:
        """Return the time (ns) that the log's lines add to an operation on *file*, which *task* begins now.

        See `SharedLines.operation_ns`; the operation is an allocation or a conversion.  Returns 0 if the log
        has no such lines.
        """
        return 0 if self._lines is None else self._lines.operation_ns(task, file, lasts_ns)
