"""A file whose pages are kept one by one: the flight of its pages under writeback."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from wbsim.models.filesystems.files import PagedFile
from wbsim.models.vfs.superblock import Flight
from wbsim.sim.engine import Environment


def test_pages_join_the_flight_that_still_takes_pages() -> None:
    """A wait for the file, or for all files, closes a flight, and the next pages are in another one.

    A flight whose pages are clean is dropped when the next one begins.
    """
    env, file = Environment(), PagedFile(0, True)
    wb: Any = SimpleNamespace(account_writeback=lambda pages: None, account_clean=lambda pages: None)
    whole = Flight(env)
    first = file.flight_in(whole)
    first.add(wb, 3)
    assert file.flight_in(whole) is first
    first.close()
    second = file.flight_in(whole)
    second.add(wb, 2)
    assert second is not first
    assert whole.pages == 5
    whole.close()
    later = Flight(env)
    third = file.flight_in(later)
    third.add(wb, 1)
    assert third not in (first, second)
    assert (whole.pages, later.pages, file.flights) == (5, 1, [first, second, third])
    first.end(wb, 3)
    third.close()
    assert file.flight_in(later) not in (first, second, third)
    assert file.flights[:2] == [second, third]
