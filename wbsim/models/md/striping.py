"""RAID0: each chunk goes to the next member (drivers/md/raid0.c)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wbsim.models.interfaces import Thread
from wbsim.models.md.array import Array, Member
from wbsim.models.md.flight import Flight
from wbsim.models.md.spec import ArraySpec, MdCosts, MdRules
from wbsim.models.parts import Parts
from wbsim.models.raid.geometry import stripe_places
from wbsim.sim.engine import Steps
from wbsim.sim.units import PAGE_BYTES


class Striping(Array):
    """An array of level RAID0, which has no thread."""

    def __init__(
        self,
        parts: Parts,
        name: str,
        spec: ArraySpec,
        rules: MdRules,
        costs: MdCosts,
        members: Sequence[Member],
    ) -> None:
        super().__init__(parts, name, spec, rules, costs, members)
        self._most_pages = min(self._most_pages, spec.chunk // PAGE_BYTES)  # max_hw_sectors

    def make_request(self, thread: Thread, flight: Flight) -> Steps:
        """Let *thread* give each chunk of the bio of *flight* to its member.  Use: `yield from`.

        Each chunk counts in ``flight.parts`` until it has ended.  The time is charged to *thread*.
        """
        bio = flight.bio
        places = stripe_places(
            bio.start_sector, bio.end_sector - bio.start_sector, self._chunk_sectors, len(self._queues)
        )
        ns = len(places) * self._times.bio
        thread.spent.md += ns
        yield ns
        for place in places:
            flight.parts += 1
            if (rest := thread.submit_bio(self._clone(bio, place, flight))) is not None:
                yield from rest

    def _end_io(self, context: Any) -> None:
        flight: Flight = context
        flight.end_part()
