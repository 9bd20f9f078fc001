"""A RAID controller: a cache of dirty strips in front of the members of an array.

In write-back mode a write ends when it is in the cache, which a battery or a capacitor protects.  Otherwise
it ends when it is on the members.  The caches of the members are off: each write to them carries FUA.

The cache destages rows: complete ones first, and otherwise in sweeps (C-LOOK), several at a time.  It begins
when more than a watermark is dirty, and when data has waited for long.  In write-through mode it begins at
once.  A full cache takes no write until a row has left.

Parity is made as in md, by the smaller number of reads (`row_writes`).

Left out: data that was read, and read-ahead; a discard has no effect; rebuilding, and patrol reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from wbsim.models.bio import DISCARD, FUA, READ, BlockDevice, Piece, Write, programmed_bytes
from wbsim.models.devices.dirty_rows import DirtyRows, Row
from wbsim.models.devices.in_order import InOrder
from wbsim.models.devices.link import Link
from wbsim.models.devices.piece import uses_behind
from wbsim.models.devices.row_writes import MemberSectors, writes_of
from wbsim.models.devices.spec import ControllerSpec
from wbsim.models.factories import DeviceFactory
from wbsim.models.raid.rows import RowLayout
from wbsim.sim.engine import Environment
from wbsim.sim.units import SECTOR_BYTES


class Countdown:
    """Calls *done* when `part_done` was called *parts* times; *parts* is at least 1."""

    __slots__ = ("_done", "_parts")

    def __init__(self, parts: int, done: Callable[[], None]) -> None:
        self._parts = parts
        self._done = done

    def part_done(self) -> None:
        """Count a part that has ended; the last one calls *done*."""
        self._parts -= 1
        if not self._parts:
            self._done()


class Controller(BlockDevice):
    """The controller of one array."""

    def __init__(
        self, *, env: Environment, spec: ControllerSpec, name: str, members: Sequence[BlockDevice]
    ) -> None:
        self._env = env
        self._members = list(members)
        self._faulty = frozenset(spec.faulty)
        self._layout = RowLayout(spec.level, len(members))
        self._strip = spec.strip // SECTOR_BYTES
        self._rows = DirtyRows(self._layout.data, self._strip)
        self._writes_back = spec.writes_back
        self._most_lines = spec.cache // spec.strip
        self._high = int(self._most_lines * spec.high_watermark)
        self._low = int(self._most_lines * spec.low_watermark)
        self._flush_after_ns = spec.flush_after
        self._depth = spec.depth
        self._link = Link(env, spec.link, spec.command_time)
        self._ends = InOrder(env)
        self._parity = Link(env, spec.parity_rate)
        self._parity_ends = InOrder(env)
        self._rank = env.next_rank()
        self._arrivals: deque[tuple[Write, Callable[[], None]]] = deque()  # writes that have no room
        self._incoming = 0  # the lines of writes on the link
        self._destaging = 0  # the number of rows on their way
        self._is_full = self._sweeps = False
        self._timer_runs = False
        self._position = 0
        self._readings = [0] * len(members)  # the reads of each member that have not ended

    def uses(self) -> dict[str, float]:
        """Return how long (ns) each part was used so far, by name: ``link``, ``parity`` and parts of members.

        The number of a member is put before the names of its parts, such as ``0 head``.
        """
        uses: dict[str, float] = {"link": self._link.busy_ns, "parity": self._parity.busy_ns}
        for number, member in enumerate(self._members):
            uses.update(uses_behind(member, str(number)))
        return uses

    def programmed_bytes(self) -> int:
        """Return how many bytes the flash of all members programmed so far; 0: no member has flash."""
        return sum(programmed_bytes(member) for member in self._members)

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        """Start *request*, and return at once; *done* is called when *request* completes."""
        if request.op == READ:
            self._read(request, done)
        else:
            self._arrivals.append((request, done))
            self._go_on()

    # -- writes into the cache ---------------------------------------------------------------------------

    def _admit(self) -> None:
        """Let waiting writes onto the link while the cache has room; an empty cache takes any write."""
        rows = self._rows
        self._is_full = False
        while self._arrivals:
            request, done = self._arrivals[0]
            if request.op == DISCARD or request.end_sector == request.start_sector:
                lines = sectors = 0
            else:
                sectors = request.end_sector - request.start_sector
                lines = rows.new_lines(request.start_sector, request.end_sector)
                taken_lines = rows.lines + rows.leaving_lines + self._incoming
                if taken_lines and taken_lines + lines > self._most_lines:
                    self._is_full = True
                    break
            self._arrivals.popleft()
            self._incoming += lines
            enter = partial(self._enter, request, lines, done) if sectors else done
            self._ends.add(self._link.take(sectors), enter)

    def _enter(self, request: Write, lines: int, done: Callable[[], None]) -> None:
        """Take *request* into the cache, where *lines* lines are kept free for it."""
        self._incoming -= lines
        rows = self._rows.add(request.start_sector, request.end_sector, self._env.now)
        if self._writes_back:
            done()
        else:
            part_done = Countdown(len(rows), done).part_done
            for row in rows:
                row.ends.append(part_done)
        self._go_on()

    # -- from the cache to the members -------------------------------------------------------------------

    def _go_on(self) -> None:
        """Take writes for which there is room, and destage rows."""
        self._admit()
        while self._destaging < self._depth and self._must_destage():
            row = self._rows.take(self._position)
            if row is None:
                break
            self._destage(row)
        oldest_ns = self._rows.oldest_ns
        if (
            oldest_ns is not None
            and not self._timer_runs
            and self._env.now < oldest_ns + self._flush_after_ns
        ):
            self._timer_runs = True
            self._env.call_at(oldest_ns + self._flush_after_ns, self._rank, self._look_at_age)

    def _must_destage(self) -> bool:
        """Return whether rows must leave now."""
        lines, oldest_ns = self._rows.lines, self._rows.oldest_ns
        self._sweeps = lines > (self._low if self._sweeps else self._high)
        is_old = oldest_ns is not None and oldest_ns + self._flush_after_ns <= self._env.now
        return self._sweeps or is_old or self._is_full or not self._writes_back

    def _look_at_age(self) -> None:
        self._timer_runs = False
        self._go_on()

    def _destage(self, row: Row) -> None:
        self._destaging += 1
        self._position = row.number + 1
        plan = writes_of(row, self._layout, self._strip, self._faulty)
        go_on = partial(self._submit_all, plan.writes, FUA, partial(self._end, row))
        if plan.parity_sectors:
            go_on = partial(self._make_parity, plan.parity_sectors, go_on)
        if plan.reads:
            self._submit_all(plan.reads, READ, go_on)
        else:
            go_on()

    def _make_parity(self, sectors: int, done: Callable[[], None]) -> None:
        self._parity_ends.add(self._parity.take(sectors), done)

    def _submit_all(self, parts: list[MemberSectors], op: str, done: Callable[[], None]) -> None:
        """Read or write *parts* of members, and call *done* when all have ended."""
        part_done = Countdown(len(parts), done).part_done
        for member, start, end in parts:
            self._members[member].submit(Piece(start, end, op), part_done)

    def _end(self, row: Row) -> None:
        """Free the lines of *row*, which is on the members."""
        self._destaging -= 1
        self._rows.end(row)
        for end in row.ends:
            end()
        self._go_on()

    # -- reads -------------------------------------------------------------------------------------------

    def _read(self, request: Write, done: Callable[[], None]) -> None:
        """Read from the cache or from the members, and send the data over the link."""
        parts: list[MemberSectors] = []
        for number, position, first, behind in self._rows.strips_of(request.start_sector, request.end_sector):
            if not self._rows.has(number, position, first, behind):
                base = number * self._strip
                for member in self._readers(number, position):
                    parts.append(MemberSectors(member, base + first, base + behind))
        send = partial(self._send, request.end_sector - request.start_sector, done)
        if not parts:
            send()
            return
        part_done = Countdown(len(parts), send).part_done
        for member, start, end in parts:
            self._readings[member] += 1
            self._members[member].submit(Piece(start, end, READ), partial(self._end_read, member, part_done))

    def _end_read(self, member: int, part_done: Callable[[], None]) -> None:
        self._readings[member] -= 1
        part_done()

    def _readers(self, number: int, position: int) -> list[int]:
        """Return the members that are read for a strip: one that has it, or all others of its row."""
        homes = self._layout.members_of(number, position)
        mirrors = [member for member in homes if member not in self._faulty]
        if mirrors:
            return [min(mirrors, key=self._readings.__getitem__)]
        return [member for member in range(len(self._members)) if member not in self._faulty]

    def _send(self, sectors: int, done: Callable[[], None]) -> None:
        self._ends.add(self._link.take(sectors), done)


SPEC = ControllerSpec
COMPONENT: DeviceFactory = Controller
