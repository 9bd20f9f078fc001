"""No write of an array ends before it is as safe as its level promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.md.rig import CHUNK, Rig
from wbsim.models.bio import READ, Write
from wbsim.models.raid.geometry import COPIES, ParityGeometry
from wbsim.sim.engine import Environment
from wbsim.sim.units import PAGE_SECTORS, US


class Done(NamedTuple):
    """A write that a member has completed."""

    start_sector: int
    end_sector: int
    begin_ns: int
    end_ns: int


class Recorder:
    """A member that takes another time for each request, and notes the writes that it has completed."""

    def __init__(self, env: Environment, number: int) -> None:
        self._env = env
        self._rank = env.next_rank()
        self._next = number
        self.requests: list[Any] = []
        self.done: list[Done] = []

    def uses(self) -> dict[str, float]:
        return {}

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        self.requests.append(request)
        self._next += 1
        begin_ns, end_ns = self._env.now, self._env.now + (37 * self._next % 101 + 10) * US

        def end() -> None:
            if request.op != READ:
                self.done.append(Done(request.start_sector, request.end_sector, begin_ns, end_ns))
            done()

        self._env.call_at(end_ns, self._rank, end)

    def has(self, sector: int, since_ns: int, until_ns: int) -> bool:
        """Return whether *sector* was written in a request that began and ended in this time."""
        return any(
            write.start_sector <= sector < write.end_sector
            and since_ns <= write.begin_ns
            and write.end_ns <= until_ns
            for write in self.done
        )


def places_of(rig: Rig, page: int) -> list[tuple[int, int]]:
    """Return the members and sectors that must have *page*: its data or copies, and then its parity."""
    spec, members = rig.spec, len(rig.devices)
    chunk_pages = CHUNK // PAGE_SECTORS
    if spec.level == "raid1":
        return [(member, page * PAGE_SECTORS) for member in range(members)]
    if spec.level == "raid10":
        number, offset = divmod(page, chunk_pages)
        numbers = [number * COPIES + copy for copy in range(COPIES)]
        return [(n % members, (n // members * chunk_pages + offset) * PAGE_SECTORS) for n in numbers]
    geometry = ParityGeometry(members, spec.parities, chunk_pages)
    stripe, member = geometry.place_of(page)
    return [(place, stripe * PAGE_SECTORS) for place in (member, *geometry.parity_of(stripe))]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["raid1", "raid10", "raid5", "raid6"]), st.integers(4, 9), st.data())
def test_ended_write_is_on_all_members_that_have_it(level: Any, members: int, data: st.DataObject) -> None:
    """Each page of a bio that has ended, and the parity of its stripe, were written since the bio came.

    A member that is missing has none of them; then the others alone must have theirs.
    """
    most = {"raid1": members - 1, "raid10": 1}.get(level, 1 if level == "raid5" else 2)
    faulty = data.draw(st.lists(st.integers(0, members - 1), max_size=most, unique=True))
    pages = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=12, unique=True))
    rig = Rig(
        level, members, faulty=faulty, devices=Recorder, bitmap=data.draw(st.booleans()),
        kernel=data.draw(st.sampled_from(["3.1", "3.11", "5.10", "6.18"])),
    )  # fmt: skip
    starts = {}
    for page in pages:
        starts[page * PAGE_SECTORS] = begin_ns = data.draw(st.integers(0, 300)) * US
        rig.start_at(begin_ns, rig.bio(page * PAGE_SECTORS, sync=data.draw(st.booleans())))
    rig.env.run()
    assert sorted(rig.ends) == sorted(starts)
    for start, end_ns in zip(rig.ends, rig.times, strict=True):
        for member, sector in places_of(rig, start // PAGE_SECTORS):
            if member not in faulty:
                assert rig.devices[member].has(sector, starts[start], end_ns)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(["raid1", "raid10", "raid5", "raid6"]), st.integers(4, 9), st.data())
def test_bit_is_set_before_the_data_is_written(level: Any, members: int, data: st.DataObject) -> None:
    """No member gets data before all of them have the first write of the bitmap."""
    rig = Rig(level, members, devices=Recorder, bitmap=True)
    page = data.draw(st.integers(16, 60))
    rig.run(rig.bio(page * PAGE_SECTORS, 8 * data.draw(st.integers(1, 20))))
    bitmap = [next(d for d in device.done if d.start_sector == 16) for device in rig.devices]
    on_all_ns = max(write.end_ns for write in bitmap)
    for device in rig.devices:
        assert all(write.begin_ns >= on_all_ns for write in device.done if write not in bitmap)
