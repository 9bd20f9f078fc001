"""READ FIRST: the protocols between the parts, in the order of a page's life.

write(2) dirties a page -> `Throttle` perhaps holds the writer back -> a flusher picks the inode -> the
shared loop (`writeback.py`) asks the `Filesystem` to write its pages -> bios -> the `Submitter`'s
plug -> `RequestQueue` -> `BlockDevice` -> completion -> clean.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from models.block.bio import Bio, Request
from models.block.merge import QueueLimits
from models.inode import Inode
from sim.engine import Environment, Steps, Task, Wait
from sim.probe import Signal
from sim.sync import Mutex, SpinLock


class Signals:
    """What can be watched; the names are those of the kernel's tracepoints."""

    __slots__ = (
        "balance_dirty_pages", "block_bio_backmerge", "block_bio_frontmerge", "block_bio_queue", "block_getrq",
        "block_plug", "block_rq_complete", "block_rq_issue", "block_unplug", "writeback_single_inode",
    )  # fmt: skip

    balance_dirty_pages: Signal
    block_bio_backmerge: Signal
    block_bio_frontmerge: Signal
    block_bio_queue: Signal
    block_getrq: Signal
    block_plug: Signal
    block_rq_complete: Signal
    block_rq_issue: Signal
    block_unplug: Signal
    writeback_single_inode: Signal

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, Signal(name))


class Submitter(Protocol):
    """A thread as the block layer sees it: it submits bios, and may have a plug (current->plug)."""

    task: Task

    @property
    def owner(self) -> object:
        """The queue that its bios are for, as `Bio.owner` wants it."""

    @property
    def limits(self) -> QueueLimits:
        """The limits of that queue."""

    def start_plug(self) -> bool:
        """blk_start_plug; False for a nested plug, which is inert and must not be finished."""

    def finish_plug(self) -> Iterable[Wait]:
        """blk_finish_plug: issue what the plug holds and take it off; to be delegated to."""

    def before_sleep(self) -> None:
        """schedule() flushes the plug; kblockd runs the queue, so this thread pays nothing."""

    def merge(self, bio: Bio) -> bool:
        """Submit *bio* if that takes no request: merge it into the plug."""

    def make_request(self, bio: Bio) -> Steps:
        """Submit *bio*, which `merge` refused: elevator, or a request of its own; may sleep."""

    def submit_runs(self, bios: NDArray[np.int64], end_io: Callable[[int], None]) -> Steps:
        """Submit writes, rows of first block and pages, in order; *end_io* is told how many pages are done."""


class Dirtier(Protocol):
    """A writer's own account with the throttle: current->nr_dirtied."""

    nr_dirtied: int


class Throttle(Protocol):
    """Holds writers back.  One per bdi."""

    @property
    def avg_write_pages_per_s(self) -> int:
        """The smoothed write bandwidth of the bdi."""

    def dirtier(self) -> Dirtier:
        """The account of a new writer."""

    def poll_pages(self, dirtier: Dirtier) -> int:
        """How many pages *dirtier* may have dirtied before it has to call `balance`."""

    def balance(self, submitter: Submitter, dirtier: Dirtier) -> Steps:
        """balance_dirty_pages; may sleep, and starts background writeback."""

    def wrote(self, since_ns: int) -> None:
        """The flusher ended a slice that began at *since_ns*."""


@dataclass(frozen=True)
class Site:
    """Where a part gets what every part may need: threads, locks and dice, each by its name; and how many processors
    there are.
    """

    env: Environment
    processors: int
    signals: Signals
    thread: Callable[[str], Submitter]
    spin_lock: Callable[[str], SpinLock]
    mutex: Callable[[str], Mutex]
    variation: Callable[[str], Callable[[], float]]
    variations: Callable[[str], Callable[[int], NDArray[np.float64]]]
    dice: Callable[[str], np.random.Generator]


@dataclass(frozen=True, slots=True)
class Iteration:
    """What a workload reports: files so far, at what rate (summed over its processes), its own overhead, and when
    (ns).
    """

    count: int
    files_per_sec: float
    app_overhead_us: int
    end_ns: int


class WriteBack(Protocol):
    """writeback_inodes_wbc: a thread that is no flusher writes back."""

    def __call__(self, submitter: Submitter, pages: int) -> Generator[Wait, None, int]:
        """Write back up to *pages* of any dirty files; returns what it took off this budget."""


class Works(Protocol):
    """How others see the flusher of a device."""

    def start_background(self) -> None:
        """Too much is dirty: write back until it is not."""

    @property
    def in_progress(self) -> bool:
        """Whether writeback runs or is about to."""


UNLIMITED_PAGES: Final = (1 << 63) - 1
"""LONG_MAX: the budget of a sync(2), which goes over whole files."""


class NoSpace(Exception):
    """ENOSPC: nothing is left for delayed pages, whose place the model does not reserve."""


class Filesystem(Protocol):
    """Gives file pages their place on disk."""

    def mkdir(self, submitter: Submitter) -> Generator[Wait, None, Any]:
        """A new directory; returns what `create` takes for it."""

    def create(
        self, submitter: Submitter, directory: Any, lead_ns: int, factor: float, then_ns: int
    ) -> Generator[Wait, None, Inode]:
        """creat(2) in *directory*, its kernel work scaled by *factor*, which varies from call to call.

        The caller works for *lead_ns* before it and for *then_ns* after it; stated here, these take no
        event of their own.  System time but *lead_ns* goes to the task's account.
        """

    def write_pages(self, submitter: Submitter, inode: Inode, budget_pages: int) -> Generator[Wait, None, int]:
        """do_writepages: allocate, build bios and submit them.

        Takes what it wrote off the inode, and returns what it took off the budget (wbc->nr_to_write): the pages
        that it wrote, unless the era counts otherwise.
        """

    @property
    def log_bytes(self) -> int:
        """Bytes written to the log so far."""

    def extents_per_file(self) -> tuple[int, ...]:
        """How many extents each file lies in, in the order of creation; empty where that is not kept."""


class BlockDevice(Protocol):
    """Takes requests in its own time."""

    def submit(self, request: Request, done: Callable[[], None]) -> None:
        """Start *request*; call *done* when it completes."""


@runtime_checkable
class BatchDevice(Protocol):
    """A device that serves writes in the order in which they come, so that many can be given to it at once."""

    def submit_batch(self, requests: NDArray[np.int64], done: Callable[[], None]) -> None:
        """Start *requests*, rows of first block and pages; call *done* when the last completes."""
