"""A thread for each writeback context: explicit work, then the periodic and the background check.

Stands for bdi_writeback_workfn / wb_workfn and wb_do_writeback (fs/fs-writeback.c).  Stands also for
bdi_forker_thread (2.6.32 to 3.9), which makes a thread when it is first needed.  For queued work it makes the
thread at once, otherwise when it looks at all devices, every dirty_writeback_centisecs.  Making a thread
takes no time here.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy_extensions import mypyc_attr

from wbsim.models.interfaces import Flushers, Thread, Wb, Work
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.parts import Parts
from wbsim.models.time_accounting import FLUSHER
from wbsim.models.writeback.loop import Writeback
from wbsim.models.writeback.wb import BackingDevice, Places, WritebackContext
from wbsim.sim.engine import PARK, Steps
from wbsim.sim.sync import Completion


class ContextThread:
    """The flusher of *wb*, which looks at its lists every *interval_ns*.

    ``alive``: the thread exists from its first work until it has written nothing for *exits_after_ns*.  If
    *exits_after_ns* is None (a workqueue), the flusher is alive while it works.
    """

    def __init__(
        self,
        parts: Parts,
        thread: Thread,
        wb: Wb,
        writeback: Writeback,
        interval_ns: int,
        exits_after_ns: int | None = None,
    ) -> None:
        self._exits_after_ns = exits_after_ns
        self._exists = False
        self._active_ns = 0
        self._env = env = parts.env
        self._urgent = parts.urgent
        self._wb = wb
        self._writeback = writeback
        self._interval_ns = interval_ns
        self._last_periodic_ns = 0
        self._asleep = False
        self.thread = thread
        env.start(thread.task, self._run())
        env.call_at(interval_ns, self._urgent, self._tick)

    @property
    def in_progress(self) -> bool:
        """True if the flusher runs or has been woken, so that a throttled writer need not wake it."""
        return not self._asleep

    @property
    def alive(self) -> bool:
        """True if the thread exists now; for a workqueue, while it works."""
        return not self._asleep if self._exits_after_ns is None else self._exists

    def wake(self) -> None:
        """Wake the flusher, which does its work items, periodic work if due, and background work if needed.

        Nothing happens if the flusher is awake.
        """
        if not self._exists:
            self._exists, self._active_ns = True, self._env.now
        if self._asleep:
            self._asleep = False
            self._env.wake(self.thread.task)

    def queue(self, work: Work) -> None:
        """Queue *work* behind earlier work, and wake the flusher.

        ``work.done``, if any, completes when the work has ended.
        """
        self._wb.work_list.append(work)
        self.wake()

    def _tick(self) -> None:
        """Handle the delayed work that fires every dirty_writeback_centisecs."""
        if len(self._wb):
            self.wake()
        elif self._exits_after_ns is not None and self._env.now - self._active_ns > self._exits_after_ns:
            self._exists = False
        self._env.call_at(self._env.now + self._interval_ns, self._urgent, self._tick)

    def _run(self) -> Steps:
        writeback, thread, works, wb = self._writeback, self.thread, self._wb.work_list, self._wb
        flushed = 0
        while True:
            while works:
                yield writeback.perform(thread, wb, works.popleft())
            if self._env.now - self._last_periodic_ns >= self._interval_ns:
                self._last_periodic_ns = self._env.now
                yield writeback.perform(thread, wb, Work("periodic"))
            if writeback.over_background(wb):
                yield writeback.perform(thread, wb, Work("background"))
            if wb.flushed_pages != flushed:
                flushed, self._active_ns = wb.flushed_pages, self._env.now
            if not works:
                self._asleep = True
                yield PARK


@mypyc_attr(allow_interpreted_subclasses=True)
class ContextFlushers(Flushers):
    """See `models.interfaces.Flushers`: a device has one or several contexts, each with a thread.

    *contexts* returns the number of contexts of a device, and *places* chooses the context of a new inode.
    """

    def __init__(
        self,
        *,
        parts: Parts,
        cache: PageCache,
        writeback: Writeback,
        interval_ns: int,
        contexts: Callable[[BackingDevice], int],
        places: Places,
        exits_after_ns: int | None = None,
    ) -> None:
        self._exits_after_ns = None if exits_after_ns is None else max(exits_after_ns, interval_ns)
        self._parts = parts
        self._cache = cache
        self._writeback = writeback
        self._interval_ns = interval_ns
        self._contexts = contexts
        self._places = places
        self._siblings: dict[Wb, list[Wb]] = {}
        self._threads: dict[Wb, ContextThread] = {}

    @property
    def threads(self) -> list[Thread]:
        """All threads, in the order of their creation."""
        return [context.thread for context in self._threads.values()]

    @property
    def alive(self) -> int:
        """See `Flushers.alive`."""
        return sum(context.alive for context in self._threads.values())

    def register(self, bdi: BackingDevice) -> None:
        """See `Flushers.register`."""
        contexts = self._contexts(bdi)
        for number in range(contexts):
            name = bdi.name if contexts == 1 else f"{bdi.name}:{number}"
            parts = bdi.parts.for_part(name)
            wb = WritebackContext(name, parts.inode_lock or parts.spin_lock("list_lock"), self._cache)
            bdi.wbs.append(wb)
            self._siblings[wb] = bdi.wbs
            thread = parts.thread(FLUSHER)
            self._threads[wb] = ContextThread(
                parts, thread, wb, self._writeback, self._interval_ns, self._exits_after_ns
            )
        bdi.places = self._places

    def start_background(self, wb: Wb) -> None:
        """See `Flushers.start_background`; wakes also the device's other contexts that have dirty inodes."""
        for sibling in self._siblings[wb]:
            if sibling is wb or len(sibling):
                self._threads[sibling].wake()

    def in_progress(self, wb: Wb) -> bool:
        """See `Flushers.in_progress`."""
        return self._threads[wb].in_progress

    def queue(self, wb: Wb, work: Work) -> Completion | None:
        """See `Flushers.queue`."""
        done = Completion(self._parts.env, "writeback")
        self._threads[wb].queue(work._replace(done=done))
        return done
