"""A stream of write(2)s, step by step; steps are joined where no task could see the difference.

A step is one call, or the part of it that ends where the throttle is due.  READ `Stream.write` FIRST.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.syscalls.process import Process, size_of
from wbsim.models.syscalls.ring import Ring
from wbsim.sim.engine import Environment, Steps, Wait
from wbsim.sim.entry import FAR_NS
from wbsim.sim.sync import RwSemaphore
from wbsim.sim.units import PAGE_BYTES

Order = Callable[[int], NDArray[np.int64]]
"""Called with a number; returns that many blocks (or pages) of a file, which are to be written next."""
UNIT_PAGES: Final = 256
"""The pages whose calls share one random factor, counted from the first call; at least one call."""


class Calls(NamedTuple):
    """The write(2)s of a stream, all alike.

    A call writes *pages* pages, or else a page takes *a_page* calls.  Around each call the program takes
    *user_ns* of user time, and *system_ns* of system time in other calls.  *random*: each call has a random
    place in its file.  *appends*: each call writes behind the present end of its file (O_APPEND), so an order
    of pages has no effect.  *sync*: the flag of open(2), if any.
    """

    pages: int = 1
    a_page: int = 1
    user_ns: int = 0
    system_ns: int = 0
    random: bool = False
    appends: bool = False
    sync: Literal["", "O_SYNC", "O_DSYNC"] = ""


class _File:
    """An open file of a stream: its ``inode``, and its *length* pages (or parts of pages), in *order*.

    A page has *parts* parts.  ``steps_left`` of them are left to be taken.
    """

    __slots__ = ("_order", "_pages", "_parts", "_parts_left", "_place", "inode", "steps_left")

    def __init__(self, inode: Any, order: Order, length: int, parts: int) -> None:
        self.inode = inode
        self.steps_left = length
        self._order = order
        self._parts_left = length
        self._parts = parts
        self._pages: NDArray[np.int64] = np.empty(0, np.int64)
        self._place = 0

    def next(self, count: int) -> NDArray[np.int64]:
        """Return the next *count* pages: the page of each part."""
        place = self._place
        if place + count > len(self._pages):
            rest = self._pages[place:]
            more = min(max(count, UNIT_PAGES) - len(rest), self._parts_left)
            self._parts_left -= more
            self._pages = np.concatenate([rest, self._order(more) // self._parts])
            self._place = place = 0
        return self._pages[place : place + count]

    def take(self, count: int) -> NDArray[np.int64]:
        """Return the next *count* pages, which are not the next ones any more."""
        pages = self.next(count)
        self._place += count
        self.steps_left -= count
        return pages


class _AppendedFile(_File):
    """An open file that grows at its end, which other processes may move."""

    def next(self, count: int) -> NDArray[np.int64]:
        """See `_File.next`; a page with room for another part is written again."""
        end, rest = size_of(self.inode), self.steps_left % self._parts
        if self._parts > 1 and rest:
            return np.full(count, end - 1)
        return np.arange(end, end + count)


class Stream:
    """The calls of *process* that write to the open files *inodes*, one call to each file in turn.

    *orders* has the order of the pages of each file, and *length* the pages (or parts of pages) of each.
    An event has at most *most* pages, or one call.  With a *ring*, the calls go through io_uring, and a call
    is a step.  No call begins at *until_ns* or later.
    """

    def __init__(
        self, env: Environment, process: Process, inodes: Sequence[Any], orders: Sequence[Order],
        calls: Calls, length: int, most: int, ring: Ring | None = None, until_ns: int = FAR_NS,
    ) -> None:  # fmt: skip
        self._env = env
        self._until_ns = until_ns
        self._ring = ring
        self._process = process
        make = _AppendedFile if calls.appends else _File
        self._files = [
            make(inode, order, length, calls.a_page) for inode, order in zip(inodes, orders, strict=True)
        ]
        self._sync = calls.sync
        self._joins = not (calls.appends or calls.sync)  # calls may be joined
        self._pages, self._a_page = calls.pages, calls.a_page
        self._length, self._random = length, calls.random
        self.total = length * len(inodes)
        """The pages, or parts of pages, of all files."""
        self._most = most
        self._unit = max(1, UNIT_PAGES // calls.pages)
        self._calls = 0  # of the current unit
        self._in_call = 0  # the pages of the current call that are written
        self._turn = 0
        self.done = 0
        """The pages, or parts of pages, that are written."""
        sb = inodes[0].sb
        one_ns, call_ns = process.write_ns(1, sb), process.write_ns(calls.pages, sb)
        page_ns = one_ns - process.call_ns
        self._write_ns = self._in_order_ns = call_ns / calls.pages - page_ns * (1 - 1 / calls.a_page)
        self._user_ns, self._system_ns = calls.user_ns / calls.pages, calls.system_ns / calls.pages

    def write(self, count: int) -> Generator[Wait, None, None]:
        """Write the next *count* pages, or parts of pages; several calls may be one event.

        Use: `yield from`.
        As many must be left; ``done`` grows by them.  The steps end early if ``until_ns`` comes before, but
        never within a call.  With a ring, some writes may still be in flight.

        Raises:
            NoSpace: too few blocks are free for a write.  A failed write of a ring's worker raises at the
                next write.
        """
        process, ring, end = self._process, self._ring, self.done + count
        latency, until_ns = process.latencies.write, self._until_ns
        while self.done < end and (self._in_call or self._env.now < until_ns):
            if ring is not None:
                yield from ring.wait_for_place()
            file = self._next_file()
            wb = file.inode.wb
            if not self._calls and not self._in_call:
                self._begin_unit()
            at_most = min(process.room(wb) * self._a_page, end - self.done)
            step = min(self._pages - self._in_call, at_most if ring is None else end - self.done)
            share = process.factor * step
            user_ns, system_ns = int(share * self._user_ns), int(share * self._system_ns)
            write_ns = int(share * self._write_ns)
            if ring is not None and not ring.takes(file.inode, file.next(step)):
                yield self._hand_over(ring, file, step, user_ns, system_ns, write_ns)
                continue
            calls, owed_ns, i_rwsem = 0, process.task.owed_ns, process.i_rwsem_of(file.inode)
            if step == self._pages and self._joins and i_rwsem is None:
                calls = self._event_calls(wb, at_most // step, user_ns + system_ns + write_ns)
            if i_rwsem is not None and not self._in_call and ring is None:
                yield self._write_alone(file, i_rwsem)
            elif calls:
                rests = self._put(calls)
                yield process.runs(calls * user_ns, calls * system_ns, calls * write_ns)
                for inode, rest in rests:
                    if wait := process.put(inode, rest, self._pages, 0):
                        yield wait
                self._wrote(calls * step)
                self._count(calls, write_ns, owed_ns)
            else:
                if ring is not None:
                    ring.lock(file.inode, file.next(step))
                yield process.runs(user_ns, system_ns, write_ns)
                if self._in_call:
                    process.leaves_out(user_ns + system_ns)
                else:
                    process.began(write_ns + owed_ns)
                if full := self._put_step(ring, file, step):
                    yield full
                self._wrote(step)
            if ring is None and process.due(wb):
                yield process.balance(wb)
            if self._sync and not self._in_call:
                yield process.write_sync(file.inode, self._sync == "O_DSYNC")
            if (ready := process.returns()) is not None:
                yield ready
            if not self._in_call:
                process.end_call(latency)

    def _write_alone(self, file: _File, i_rwsem: RwSemaphore) -> Steps:
        """Make one call to *file*, which owns *i_rwsem* from its begin to its end."""
        process = self._process
        whole = process.factor * self._pages
        yield process.runs(int(whole * self._user_ns), int(whole * self._system_ns))
        process.began(0)
        yield i_rwsem.own_for(process.task, self._call(file), process.thread.before_sleep)

    def _call(self, file: _File) -> Steps:
        """Do a complete call to *file*, as the throttle lets it, without the program's own time."""
        process, wb, left_pages = self._process, file.inode.wb, self._pages
        while left_pages:
            step = min(left_pages, process.room(wb) * self._a_page)
            yield process.runs(0, 0, int(process.factor * step * self._write_ns))
            if full := self._put_step(None, file, step):
                yield full
            self._wrote(step)
            left_pages -= step
            if process.due(wb):
                yield process.balance(wb)

    def _put_step(self, ring: Ring | None, file: _File, step: int) -> Wait | None:
        """Make the next *step* pages of *file* dirty; return what to wait for."""
        pages, begins = file.take(step), int(not self._in_call)
        if ring is not None:
            return self._process.put_locked(file.inode, pages, self._pages)
        return self._process.put(file.inode, pages, self._pages, begins)

    @property
    def written_bytes(self) -> int:
        """The bytes that the calls so far have written, or handed to workers of a ring."""
        return self.done * PAGE_BYTES // self._a_page

    @property
    def total_bytes(self) -> int:
        """The bytes that all calls of the stream write to all its files, whether written yet or not.

        A process that writes its files several times has a stream for each pass.
        """
        return self.total * PAGE_BYTES // self._a_page

    def steps_for(self, count: int) -> int:
        """Return how many pages, or parts of pages, the calls for the first *count* bytes write.

        The result is at most ``total``.  Calls are whole, so the last one may end behind the *count* bytes.
        """
        calls = -(-count * self._a_page // (PAGE_BYTES * self._pages))
        return min(self.total, calls * self._pages)

    def _next_file(self) -> _File:
        """Return the file whose turn it is; a file that is complete is passed."""
        while not self._files[self._turn].steps_left:
            self._turn = (self._turn + 1) % len(self._files)
        return self._files[self._turn]

    def pass_turn(self) -> Any:
        """Return the inode of the file whose turn it is, and let the next file have its turn.

        fio gives an fsync(2) a turn, so with several files it is another file than the last one.
        """
        inode = (self._next_file() if self.done < self.total else self._files[self._turn]).inode
        if len(self._files) > 1:
            self._joins = False  # the files are not equally far any more
            self._turn = (self._turn + 1) % len(self._files)
        return inode

    def _count(self, calls: int, write_ns: int, owed_ns: int) -> None:
        """Count the latencies of *calls* joined calls, but for the last, which may not have ended yet.

        The first has the *owed_ns* of interrupts.
        """
        process = self._process
        if calls > 1:
            latency = process.latencies.write
            latency.add(write_ns + owed_ns)
            if calls > 2:
                latency.add(write_ns, calls=calls - 2)
            owed_ns = 0
        process.began(write_ns + owed_ns)

    def _hand_over(
        self, ring: Ring, file: _File, step: int, user_ns: int, system_ns: int, write_ns: int
    ) -> Steps:
        """Let the program work, and let *ring* hand its call, which takes *write_ns*, to a worker."""
        process = self._process
        punt_ns = int(process.factor * process.punt_ns)
        yield process.runs(user_ns, system_ns, punt_ns)
        waker_ns = ring.hand_over(file.inode, file.take(step), write_ns, self._env.now - punt_ns)
        if waker_ns:
            yield waker_ns
        self._wrote(step)
        if (ready := process.returns()) is not None:
            yield ready

    def _begin_unit(self) -> None:
        """Draw the factor of the next calls, and set the time of a page (or of a part) in write(2)."""
        process, sb = self._process, self._files[0].inode.sb
        process.vary()
        if self._random:
            places = self._length / self._pages
            writes = self.done / len(self._files) / self._pages
            extents = writes * (1 - writes / places) / self._a_page
            search_ns = process.search_ns(self._length // self._a_page, extents, sb)
            self._write_ns = self._in_order_ns + search_ns / self._pages

    def _event_calls(self, wb: Any, at_most: int, call_ns: int) -> int:
        """Return how many calls of *call_ns* are one event, or 0; at most *at_most*.

        The agenda has no other event before the end of the last one, so no task observes an instant between
        them.  No call waits: its inode is on the list of *wb*, its lock is free, and no other work is due.
        """
        task = self._process.task
        if task.scheduler is not None and task.scheduler.contended:
            return 0
        free_ns = min(self._env.next_event_ns(), self._until_ns) - self._env.now - 1 - task.owed_ns
        ring = self._ring
        if ring is not None:
            free_ns = min(free_ns, ring.tick_left_ns() - 1 - task.owed_ns)
        most = max(1, self._most // self._pages)
        calls = min(at_most, most, self._unit - self._calls, free_ns // max(call_ns, 1))
        files, distance = len(self._files), 0
        while distance < min(calls, files):
            file = self._files[(self._turn + distance) % files]
            inode, share = file.inode, self._share(calls, distance)
            if inode.dirty_pages and inode.wb is wb and (ring is None or ring.is_free(inode)):
                fit = inode.sb.filesystem.writes_at_once(inode, file.next(share)) // self._pages
            else:
                fit = 0
            if fit * self._pages < share:
                calls = min(calls, distance + fit * files)
            distance += 1
        return max(calls, 0)

    def _share(self, calls: int, distance: int) -> int:
        """Return how many pages of the next *calls* calls go to the file that is *distance* files ahead."""
        files = len(self._files)
        return (calls - distance + files - 1) // files * self._pages

    def _put(self, calls: int) -> list[tuple[Any, NDArray[np.int64]]]:
        """Make the pages of the next *calls* calls dirty, which are joined.

        Return the inodes and the pages of those for which no unclaimed block was left.
        """
        process, files, rests = self._process, len(self._files), []
        for distance in range(min(calls, files)):
            file, share = self._files[(self._turn + distance) % files], self._share(calls, distance)
            inode, pages = file.inode, file.take(share)
            filesystem = inode.sb.filesystem
            waits = filesystem.write_lock(process.thread, inode, pages, share // self._pages)
            assert waits is None, "the lock is free"
            done, clean = filesystem.write(inode, pages, self._pages)
            if done < len(pages):
                rests.append((inode, pages[done:]))
            process.account(inode.wb, clean)
            wait = process.mark_dirty(inode, clean, 0)
            assert wait == 0, "the inode is on its list"
        return rests

    def _wrote(self, count: int) -> None:
        """Count *count* pages that are written; the next call goes to the next file."""
        self.done += count
        calls, self._in_call = divmod(self._in_call + count, self._pages)
        self._calls = (self._calls + calls) % self._unit
        self._turn = (self._turn + calls) % len(self._files)
