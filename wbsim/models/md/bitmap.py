"""The write-intent bitmap: a bit is on all members before a region is written (drivers/md/md-bitmap.c).

One bit stands for a region.  A write to a region whose bit is not set marks the page with the bit.  All
marked pages are written before the data (`WriteIntentBitmap.write_out`).  The bit is cleared lazily, when the
region had no write for two passes of the daemon, 5 s apart.

Left out: the copy of a bitmap in a file, llbitmap (6.18), and the number of writes that a counter can hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wbsim.models.bio import FLUSH_FUA, Bio
from wbsim.models.block.gendisk import GenDisk
from wbsim.models.interfaces import Thread
from wbsim.models.time_accounting import BITMAP
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.sync import Completion
from wbsim.sim.units import PAGE_BYTES, PAGE_SECTORS, SECTOR_BYTES, S

PERIOD_NS: Final = 5 * S
"""The time between two passes of the daemon (daemon_sleep)."""
_SUPERBLOCK_BYTES: Final = 256
_START_SECTOR: Final = 16
"""The first sector of the bitmap on each member: 4 KiB behind the superblock (metadata 1.2)."""


class WriteIntentBitmap:
    """The bitmap of an array, on all *members* that are there; a region has *chunk* bytes.

    RAID1 and RAID10 count sectors in the array.  RAID5 and RAID6 count them on a member, from its first data
    on.
    """

    def __init__(self, env: Environment, members: Sequence[GenDisk], chunk: int) -> None:
        self._env = env
        self._members = members
        self._chunk_sectors = chunk // SECTOR_BYTES
        self._writes: dict[int, int] = {}
        """The writes in flight by region, for each region whose bit is set."""
        self._idle: dict[int, int] = {}
        """The passes of the daemon since the last write, by region without a write in flight."""
        self._marked: dict[int, None] = {}
        self._lazy: dict[int, None] = {}
        self._landings: list[Completion] = []
        self._passes = False
        self._rank = env.next_rank()

    def start_write(self, sector: int, sectors: int) -> None:
        """Count a write of *sectors* sectors from *sector* on, in no time, and set the bits of its regions.

        A page with a new bit is marked, so the next `write_out` writes it (md_bitmap_startwrite).  The caller
        calls `end_write` with the same sectors later.
        """
        for region in self._regions(sector, sectors):
            count = self._writes.get(region)
            self._writes[region] = 1 if count is None else count + 1
            self._idle.pop(region, None)
            if count is None:
                page = _page_of(region)
                self._lazy.pop(page, None)
                self._marked[page] = None

    def end_write(self, sector: int, sectors: int) -> None:
        """Count the end of a write that `start_write` counted; an idle bit is cleared 5 to 10 s later."""
        for region in self._regions(sector, sectors):
            self._writes[region] -= 1
            if not self._writes[region]:
                self._idle[region] = 0
                if not self._passes:
                    self._passes = True
                    self._env.call_at(self._env.now + PERIOD_NS, self._rank, self._pass)

    def _regions(self, sector: int, sectors: int) -> range:
        return range(sector // self._chunk_sectors, (sector + sectors - 1) // self._chunk_sectors + 1)

    def _pass(self) -> None:
        """md_bitmap_daemon_work: clear the bits of regions that had no write for two passes.

        The page with a cleared bit is written with the next one that must be, which takes no time.
        """
        for region, passes in list(self._idle.items()):
            if passes:
                del self._idle[region], self._writes[region]
                self._lazy[_page_of(region)] = None
            else:
                self._idle[region] = 1
        self._passes = bool(self._idle)
        if self._passes:
            self._env.call_at(self._env.now + PERIOD_NS, self._rank, self._pass)

    def write_out(self, thread: Thread) -> Steps:
        """Let *thread* write the marked pages to all members, and wait for all writes.  Use: `yield from`.

        A page that another thread is writing counts, too, before it has reached all members.  Arrays call
        this before the data (md_bitmap_unplug).
        """
        landings = [landed for landed in self._landings if not landed.done]
        writes: list[tuple[int, GenDisk, Completion]] = []
        if self._marked:
            pages = {**self._marked, **self._lazy}
            self._marked, self._lazy = {}, {}
            writes = [
                (page, member, Completion(self._env, BITMAP)) for page in pages for member in self._members
            ]
            landings += [landed for _, _, landed in writes]
        self._landings = landings
        for page, member, landed in writes:
            bio = Bio(
                _START_SECTOR + page * PAGE_SECTORS, PAGE_SECTORS, op=FLUSH_FUA, queue=member, sync=True,
                meta=True, nomerge=True, unplug=True, end_io=_complete, context=landed,
            )  # fmt: skip
            if (rest := thread.submit_bio(bio)) is not None:
                yield from rest
        if landings:
            thread.before_sleep()
        for landed in landings:
            yield from landed.wait(thread.task)


def _complete(landed: Completion) -> None:
    landed.complete()


def _page_of(region: int) -> int:
    """Return the page of the bitmap that has the bit of *region*, behind the superblock of the bitmap.

    >>> _page_of(30_719), _page_of(30_720)
    (0, 1)
    """
    return (_SUPERBLOCK_BYTES * 8 + region) // (8 * PAGE_BYTES)
