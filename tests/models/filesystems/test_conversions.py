"""The worker that converts what was written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from models.filesystems.conversions import Conversions, Submission, Workers
from sim.engine import Environment


def test_pages_are_clean_once_their_ranges_are_converted() -> None:
    """12 pages in 6 ranges of 100 ns: 4 pages are on the device at 0, 8 at 50, and wait for the worker; the
    flusher is at the inode from 60 on, and each range then waits for half of its 40.
    """
    env, log = Environment(), []
    inode: Any = SimpleNamespace(syncing=False)
    conversions = Conversions(inode)
    site: Any = SimpleNamespace(
        env=env, processors=1, thread=lambda name: SimpleNamespace(task=env.task(name))
    )
    workers = Workers(site, 100, 40, lambda of, ranges: log.append((env.now, "ranges", ranges)))
    one = Submission(workers, conversions, 12, 6, lambda pages: log.append((env.now, "clean", pages)))
    assert workers.delay_ns(conversions) == 0
    one.written(4)
    assert (workers.delay_ns(conversions), workers.end_of(conversions)) == (50, 200)
    ends = []
    env.call_at(30, 0, lambda: ends.append(workers.end_of(conversions)))
    env.call_at(50, 0, lambda: one.written(8))
    env.call_at(60, 0, lambda: setattr(inode, "syncing", True))
    env.run()
    assert ends == [200]
    assert log == [(200, "clean", 4), (200, "ranges", 2), (680, "clean", 8), (680, "ranges", 4)]
    assert not conversions.busy
