"""Requests that go to the driver together: as rows of an array, as objects, or as both.

An observer sees one object from the plug to the end of a request (`models.block.runs`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mypy_extensions import mypyc_attr
from numpy.typing import NDArray

from wbsim.models.bio import Bio, Request

EndIo = Callable[[int], None]
"""Is told how many of its pages are done."""


@mypyc_attr(free_list_len=1)
class Batch:
    """Requests of one *queue* that go to the driver together, in order: as *rows*, or as *objects*, or as
    both, where somebody watches.

    ``ends``: each end_io to be called for the pages of the rows, with its number of pages.
    """

    __slots__ = ("_objects", "ends", "queue", "rows")

    def __init__(
        self,
        queue: Any,
        rows: NDArray[Any] | None,
        ends: list[tuple[EndIo, int]],
        objects: list[Request] | None,
    ) -> None:
        self.queue = queue
        self.rows = rows
        self.ends = ends
        self._objects = objects

    def __len__(self) -> int:
        if self.rows is not None:
            return len(self.rows)
        assert self._objects is not None, "a batch has rows, or objects"
        return len(self._objects)

    def _rows(self) -> NDArray[Any]:
        assert self.rows is not None, "a batch has rows, or objects"
        return self.rows

    @property
    def pages(self) -> int:
        """How many pages it writes."""
        return sum(pages for _, pages in self.ends)

    def requests(self) -> list[Request]:
        """Its requests as objects, the same objects at each call; those of rows tell nobody of their end."""
        if self._objects is None:
            self._objects = [request_of(row, self.queue, []) for row in self._rows()]
        return self._objects

    def requests_that_end(self) -> list[Request]:
        """The same, to be issued one by one; the last of the rows to complete calls every end_io."""
        requests = self.requests()
        if self.rows is None:
            return requests
        left = len(requests)

        def ended(_: object) -> None:
            nonlocal left
            left -= 1
            if not left:
                for end_io, pages in self.ends:
                    end_io(pages)

        for request in requests:
            request.bios[0].end_io = ended
        return requests


def request_of(row: Any, queue: Any, ends: list[tuple[EndIo, int]]) -> Request:
    """*row* as an object of one bio, which tells all parts of their end."""
    start, end = int(row["start_sector"]), int(row["end_sector"])
    end_io = partial(tell_all, ends) if ends else None
    request = Request(Bio(start, end - start, segments=int(row["segments"]), queue=queue, end_io=end_io))
    take_over(request, row)
    return request


def take_over(request: Request, row: Any) -> None:
    """*request* has grown to what *row* is."""
    request.start_sector, request.end_sector = int(row["start_sector"]), int(row["end_sector"])
    request.segments, request.merges = int(row["segments"]), int(row["merges"])
    request.nomerge, request.meta = bool(row["nomerge"]), bool(row["meta"])


def tell_all(ends: list[tuple[EndIo, int]], _: object) -> None:
    """Tell each of *ends* how many of its pages are done."""
    for end_io, pages in ends:
        end_io(pages)
