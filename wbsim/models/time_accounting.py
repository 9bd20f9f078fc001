"""The processor time of a thread, by the path of the kernel that took it.

Every path charges its time, when it begins, to the thread that runs it: a flusher, a worker, or a writer that
writes back itself.  `sim.engine.Task` counts spinning, waking up and waits.
"""

from __future__ import annotations

from typing import Final

from wbsim.sim.engine import IDLE, READY, Task

PATHS: Final = {
    "user": "the program itself",
    "program": "its other system calls",
    "fork": "fork(2), exit(2) and what the parent prints",
    "create": "creat(2) and mkdir(2)",
    "write": "write(2): the call, the copy, the page cache",
    "close": "close(2)",
    "lookup": "reading inodes into the cache, and names",
    "unlink": "unlink(2)",
    "sync": "sync(2): looking at cached inodes",
    "reclaim": "evicting inodes",
    "inodes": "the lists and the hash of inodes, under their locks",
    "lists": "moving inodes between the lists of a context, under its lock",
    "inode": "__writeback_single_inode",
    "pages": "tagging pages, and adding them to bios",
    "allocate": "giving delayed pages their blocks",
    "commit": "committing transactions to the log in memory",
    "request": "a request for a bio that does not merge",
    "insert": "inserting requests into the elevator, under the queue's lock",
    "dispatch": "giving requests to the driver",
    "complete": "what follows once pages are on disk",
    "log": "writing the log, and metadata in place",
    "md": "an array of disks: mapping bios, and visits to stripes",
    "parity": "an array of disks: copies into stripes, and parity",
    "device": "a loop device's own copying",
}
"""The paths that take processor time, and their descriptions."""


# The causes of waits; the cause of a wait for a lock is "lock" and its name (`sim.sync.waiting_for`).
CHILDREN: Final = "children"
PAUSE: Final = "a pause"
LOG_SPACE: Final = "log space"
LOG_WRITE: Final = "the log's write"
DEVICE: Final = "the device"
WAKE_UP: Final = "wake-ups"
WBT: Final = "wbt"
STRIPE: Final = "a stripe"
BITMAP: Final = "the bitmap's write"
REQUEST: Final = "a request"
RING: Final = "io_uring"
THROTTLED: Final = "throttled"
CONGESTION: Final = "congestion"
I_SYNC: Final = "lock I_SYNC"
# The last parts of the names of threads; `wbsim explain` groups threads of several kinds by them.
FLUSHER: Final = "flusher"
PARENT: Final = "parent"
PROCESS: Final = "process"
IO_WORKER: Final = "iou-wrk"


class Spent:
    """Processor time by path (ns), and the pauses that a program makes by itself.

    * ``pause``: the processor time of pauses through which the program spun.
    * ``paced``: the time of the run that the program's own pauses set.  No faster machine ends the thread
      sooner.  With a rate, this is the time until the last pause ended: faster writes only lengthen it.
    """

    __slots__ = (
        "allocate", "close", "commit", "complete", "create", "device", "dispatch", "fork", "inode",
        "inodes", "insert", "lists", "log", "lookup", "md", "paced", "pages", "parity", "pause", "program",
        "reclaim",
        "request", "sync", "unlink", "user", "write",
    )  # fmt: skip

    def __init__(self) -> None:
        self.user = self.program = self.fork = 0
        self.create = self.write = self.close = 0
        self.lookup = self.unlink = self.sync = self.reclaim = self.inodes = 0
        self.lists = self.inode = self.pages = self.allocate = self.commit = 0
        self.request = self.insert = self.dispatch = self.complete = 0
        self.log = self.device = 0
        self.md = self.parity = 0
        self.pause = self.paced = 0

    def by_path(self) -> dict[str, int]:
        """Return the times of all paths (ns), in the order of `PATHS`."""
        return {path: getattr(self, path) for path in PATHS}

    @property
    def system(self) -> int:
        """The time (ns) of all paths of `PATHS` but ``user``; pauses that spin are not in it."""
        return sum(self.by_path().values()) - self.user


def system_ns(task: Task, spent: Spent) -> int:
    """Return the system time (ns) of *task* so far as time(1) sees it: work, spinning, and interrupts.

    *spent* has the work of this task.
    """
    return spent.system + task.spin_ns + task.interrupted_ns


Cause = tuple[str, str]
"""A state (user, system, spinning, ready, waiting), and its cause."""
Life = dict[Cause, int]
"""The time of a thread (ns), by cause."""
OTHER: Final = ("system", "other")


def life_of(task: Task, spent: Spent, now: int) -> Life:
    """Return the time of a thread from the beginning of the run until *now* (ns), by state and cause.

    A key is such as ("waiting", "the device"); causes without time are left out.  *task* and *spent* are
    those of the thread.  For a running thread the current step counts in full, except spinning.  For any
    other thread the times add up to *now*; "other" is time that a user-supplied component used without
    charging it.
    """
    by_path = spent.by_path()
    life: Life = {("user", ""): by_path.pop("user"), ("user", PAUSE): spent.pause}
    life.update({("system", path): ns for path, ns in by_path.items()})
    life["system", "interrupts"] = task.interrupted_ns - task.owed_ns
    life["system", "waking"] = task.waking_ns
    life.update({("spinning", lock): ns for lock, ns in task.spun_ns.items()})
    if not task.on_cpu:
        life[OTHER] = task.ran_ns - sum(life.values())
    life["ready", ""] = task.ready_ns
    life["waiting", IDLE] = task.idle_ns
    life.update({("waiting", reason): ns for reason, ns in task.slept_ns.items()})
    if not task.on_cpu:
        lately = ("ready", "") if task.waits_for == READY else ("waiting", task.waits_for)
        life[lately] = life.get(lately, 0) + now - task.since_ns
    return {cause: ns for cause, ns in life.items() if ns}
