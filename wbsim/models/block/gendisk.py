"""A block device as filesystems and flushers see it, be it a disk with a queue or an array of disks."""

from __future__ import annotations

from dataclasses import dataclass, field

from wbsim.models.bio import Bio
from wbsim.models.block.spec import QueueLimits
from wbsim.models.block.wbt import WritebackThrottling
from wbsim.models.interfaces import Thread
from wbsim.models.scheduler.cpu import ANY_CPU
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.units import PAGE_BYTES


@dataclass
class RequestStats:
    """The completed requests of one direction, as in /proc/diskstats, with exact times.

    ``ios`` counts requests, and ``merges`` the bios that joined a request, so together they count all bios.
    ``wait_ns`` is the sum of the times from block_getrq to completion, including the time in a plug.
    """

    ios: int = 0
    merges: int = 0
    sectors: int = 0
    wait_ns: int = 0


@dataclass
class DiskStats:
    """/proc/diskstats of one disk: ``reads``, ``writes``, and the requests in the driver now.

    ``busy_ns``: the time with a request in the queue or in the driver (io_ticks), up to the last idle moment.
    """

    reads: RequestStats = field(default_factory=RequestStats)
    writes: RequestStats = field(default_factory=RequestStats)
    in_flight: int = 0
    busy_ns: int = 0


class GenDisk:
    """struct gendisk: one block device.

    * ``takes_bios``: bios go to `take_bio`, and not into requests (a bio-based driver, such as md).
    * ``has_cache``: a flush is sent to the device, because a write that is complete may be in a volatile
      cache.
    * ``ends_on``: the processor that handles the end of a bio at the moment.
    * ``wbt``: the writeback throttling of its queue; None: it has none.
    """

    def __init__(self, env: Environment, name: str, limits: QueueLimits, has_cache: bool) -> None:
        self._env = env
        self.name = name
        self.limits = limits
        self.has_cache = has_cache
        self.takes_bios = False
        self.ends_on = ANY_CPU
        self.stat = DiskStats()
        self.wbt: WritebackThrottling | None = None
        self._busy_since: int | None = None
        # Copies: a spec's own attributes are slow to read.
        self._most_pages = limits.max_sectors_bytes // PAGE_BYTES
        self._most_segments = limits.max_segments
        self._segment_pages = limits.max_segment_bytes // PAGE_BYTES

    def take_bio(self, thread: Thread, bio: Bio) -> Steps:
        """Let *thread* submit *bio* to an array of md, which ``takes_bios``.  Use: `yield from`.

        Raises:
            NotImplementedError: this is a disk, which takes requests.
        """
        raise NotImplementedError(f"{self.name} takes requests")

    def unplug(self) -> None:
        """Open the plug of the queue, or of each member's queue (to 2.6.38), for a task that waits.

        Its requests then go to the driver.  A queue without a plug, and an open plug, stay as they are.
        """

    @property
    def congested(self) -> bool:
        """True if most asynchronous requests are taken, so pdflush leaves the device alone; here False."""
        return False

    @property
    def busy_ns(self) -> int:
        """The time (ns), until now, with a request in the queue or the driver; of an array, with a bio in it.

        As a share of the elapsed time this is %util of iostat.
        """
        start_ns = self._busy_since
        return self.stat.busy_ns + (0 if start_ns is None else self._env.now - start_ns)

    @property
    def queue_length(self) -> int:
        """The number of requests that the driver has not taken yet; an array of md has none."""
        return 0

    def segment_pages(self, folio_pages: int) -> int:
        """Return the most pages of one segment of a bio, for data in folios of *folio_pages* pages.

        Large folios make fewer segments, so a request may be larger (docs/measurements.md H).
        """
        return min(folio_pages, self._segment_pages)

    def bio_pages(self, segment_pages: int) -> int:
        """Return the most pages of a bio of data, whose segments have *segment_pages* pages."""
        return min(self._most_pages, self._most_segments * segment_pages)

    def uses(self) -> dict[str, float]:
        """Return how long (ns) each part of the device was used so far, by name (`BlockDevice.uses`).

        An array of md returns an empty dict; its members are disks of the machine, and have these times.
        """
        return {}

    def programmed_bytes(self) -> int:
        """Return how many bytes the flash of the device programmed so far; 0: the device has no flash.

        An array of md returns 0; its members are disks of the machine, and have their counts.
        """
        return 0

    def check(self) -> None:
        """Check the laws of the device at the end of a run; `Queue` and `Array` have laws.

        Raises:
            LawBroken: something was lost, or a part was used for longer than the run lasted.
        """

    def _becomes_busy(self) -> None:
        if self._busy_since is None:
            self._busy_since = self._env.now

    def _becomes_idle(self) -> None:
        if self._busy_since is not None:
            self.stat.busy_ns += self._env.now - self._busy_since
            self._busy_since = None
