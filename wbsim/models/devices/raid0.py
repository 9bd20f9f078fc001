"""Striping over several devices (md raid0, or a controller that stripes)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wbsim.models.bio import BlockDevice, Piece, Write, programmed_bytes
from wbsim.models.devices.piece import uses_behind
from wbsim.models.devices.spec import Raid0Spec
from wbsim.models.factories import DeviceFactory
from wbsim.sim.engine import Environment
from wbsim.sim.units import SECTOR_BYTES


class Raid0(BlockDevice):
    """Splits each request at the chunks; the pieces for one member are submitted as one.

    A request completes with its last piece.  A flush, which has no sectors, goes to all members.
    """

    def __init__(
        self, *, env: Environment, spec: Raid0Spec, name: str, members: Sequence[BlockDevice]
    ) -> None:
        self._chunk_sectors = spec.chunk // SECTOR_BYTES
        self._members = list(members)

    def uses(self) -> dict[str, float]:
        """Return how long (ns) each part of each member was used so far, by name.

        The number of the member is put before the name of the part, such as ``0 head``.
        """
        member_uses = [uses_behind(member, str(number)) for number, member in enumerate(self._members)]
        return {name: used_ns for parts in member_uses for name, used_ns in parts.items()}

    def programmed_bytes(self) -> int:
        """Return how many bytes the flash of all members programmed so far; 0: no member has flash."""
        return sum(programmed_bytes(member) for member in self._members)

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        """Start *request*, and return at once; *done* is called when *request* completes."""
        chunk, members = self._chunk_sectors, self._members
        begin, end = request.start_sector, request.end_sector
        first, last = begin // chunk, (end - 1) // chunk
        if first == last:  # the common case, without the bookkeeping
            row, member = first // len(members), first % len(members)
            start = begin - (first - row) * chunk
            device = members[member]
            device.submit(Piece(start, start + end - begin, request.op), done)
            return
        pieces: dict[int, tuple[int, int]] = {}
        if begin == end:  # a flush, for all members
            pieces = dict.fromkeys(range(len(members)), (0, 0))
        for index in range(first, last + 1):
            start = max(begin, index * chunk)
            sectors = min(end, (index + 1) * chunk) - start
            row, member = divmod(index, len(members))
            place, so_far = pieces.get(member, (start - (index - row) * chunk, 0))
            pieces[member] = (place, so_far + sectors)
        pieces_left = len(pieces)

        def piece_done() -> None:
            nonlocal pieces_left
            pieces_left -= 1
            if pieces_left == 0:
                done()

        for member, (start, sectors) in pieces.items():
            members[member].submit(Piece(start, start + sectors, request.op), piece_done)


SPEC = Raid0Spec
COMPONENT: DeviceFactory = Raid0
