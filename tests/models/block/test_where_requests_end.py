"""The processor on which a request ends (`Queue.ends_on`), as its end_io sees it: completions run there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import BlockLayer
from wbsim.models.bio import Bio
from wbsim.models.interfaces import Thread
from wbsim.sim.engine import Steps


class Ends:
    """A queue whose interrupts go to the *submitter* or to any processor; ``seen`` has each end of a bio."""

    def __init__(self, interrupts: str, **changes: Any) -> None:
        self.layer = BlockLayer(costs=(0, 0, 0), interrupts=interrupts, cpus=8, **changes)
        self.seen: list[tuple[int, int, int]] = []

    def bio(self, start_sector: int) -> Bio:
        """Return a bio whose end is kept: the time, the first sector, and the processor."""
        queue = self.layer.queue

        def end_io(start: int) -> None:
            self.seen.append((self.layer.env.now, start, queue.ends_on))

        return Bio(start_sector, 8, queue=queue, end_io=end_io, context=start_sector)

    def writer(self, start_ns: int, cpu: int, *starts: int, plugged: bool = False) -> Any:
        """Return a body that submits bios at *starts* on processor *cpu*, from *start_ns* on."""

        def body(thread: Thread) -> Steps:
            yield start_ns
            thread.task.cpu = cpu
            if plugged:
                thread.start_plug()
            for start in starts:
                yield from self.layer.submit(thread, self.bio(start))
            if plugged:
                yield from thread.finish_plug()

        return body


def test_no_processor_is_named_before_the_first_request_ends() -> None:
    """-1 stands for any processor."""
    assert BlockLayer(interrupts="submitter").queue.ends_on == -1


@pytest.mark.parametrize(("interrupts", "cpus"), [("submitter", [3, 5, 0]), ("any", [-1, -1, -1])])
def test_request_ends_on_the_processor_that_submitted_it(interrupts: str, cpus: list[int]) -> None:
    """Three processors submit at 0, 4 and 8 us, and a request takes 10 us: all are in flight together."""
    of = Ends(interrupts)
    of.layer.run(of.writer(0, 3, 800), of.writer(4_000, 5, 80), of.writer(8_000, 0, 160))
    assert of.seen == [(10_000, 800, cpus[0]), (14_000, 80, cpus[1]), (18_000, 160, cpus[2])]


def test_request_that_waited_ends_on_its_own_processor() -> None:
    """The driver takes one request at a time, so the second one goes out when the first one ends."""
    of = Ends("submitter", depth=1)
    of.layer.run(of.writer(0, 3, 800), of.writer(1, 5, 80))
    assert of.seen == [(10_000, 800, 3), (20_000, 80, 5)]


def test_merged_bios_end_where_their_plug_was_flushed() -> None:
    """Two bios in one request end together, on processor 6; a third bio is another request."""
    of = Ends("submitter")
    of.layer.run(of.writer(0, 6, 80, 88, 800, plugged=True))
    assert of.seen == [(10_000, 80, 6), (10_000, 88, 6), (10_000, 800, 6)]
