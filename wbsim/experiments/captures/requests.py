"""The kernel's requests from getrq to issue, by the kernel's own decisions, as far as a capture shows them.

A bio may merge with a request that the capture does not show.  Such a request is *hidden*: it began before
the capture or in a gap.  The size of a hidden request is unknown, so decisions on it are not judged.
"""

from __future__ import annotations

from collections import defaultdict

from wbsim.experiments.captures.merge_decisions import Moved, Piece
from wbsim.models.block.merge import BACK


class Seen:
    """A request of task *pid* from sector *start* to *end* (exclusive).

    * ``plugged``: by the steps so far, the request is in its task's plug.
    * ``inserted``: the request waits in the scheduler, where the bios of all tasks may join it.
    * ``hidden``: the capture does not show the complete request.
    """

    __slots__ = ("end", "hidden", "inserted", "pid", "plugged", "start")

    def __init__(self, pid: int, start: int, end: int, *, hidden: bool) -> None:
        self.pid = pid
        self.start = start
        self.end = end
        self.plugged = False
        self.inserted = False
        self.hidden = hidden


class Requests:
    """The requests of one device that are not issued, indexed by their first sector and by their end."""

    def __init__(self) -> None:
        self._by_start: defaultdict[int, list[Seen]] = defaultdict(list)
        self._by_end: defaultdict[int, list[Seen]] = defaultdict(list)

    def begin(self, piece: Piece, *, hidden: bool) -> Seen:
        """Add and return the new request of the bio of *piece*.

        *hidden*: the task's plug holds, or may hold, requests that the capture does not show.  The new
        request then counts as hidden, too.
        """
        return self._add(Seen(piece.pid, piece.sector, piece.sector + piece.sectors, hidden=hidden))

    def joined_by(self, piece: Piece) -> Seen:
        """Return the request that the bio of *piece* merged with, extended by the bio.

        The kernel's decision in *piece* must be a merge.  If the capture shows no such request, a hidden one
        is added, which has only the sectors of the bio.  The bio can join inserted requests and those of the
        task itself.  Requests that are shown come before hidden ones, and then those that are not inserted.
        """
        start, end = piece.sector, piece.sector + piece.sectors
        neighbours = self._by_end.get(start, ()) if piece.merge is BACK else self._by_start.get(end, ())
        request = _joinable(neighbours, piece.pid)
        if request is None:
            return self._add(Seen(piece.pid, start, end, hidden=True))
        self._remove(request)
        request.start, request.end = min(request.start, start), max(request.end, end)
        return self._add(request)

    def hidden_beside(self, piece: Piece) -> bool:
        """Return whether the bio of *piece* touches a hidden request that its task might join.

        A decision for a new request is then not judged.
        """
        neighbours = (
            *self._by_end.get(piece.sector, ()),
            *self._by_start.get(piece.sector + piece.sectors, ()),
        )
        return any(request.hidden and _open_to(request, piece.pid) for request in neighbours)

    def move(self, step: Moved) -> Seen | None:
        """Follow *step*; return the request that was inserted, merged or issued.

        An issued request is removed; None if the capture did not show it.  An inserted request stays; one
        that is not known is added as hidden.  A merged request is removed and returned, and the inserted
        request that ends at its start grows by it.
        """
        start, end = step.sector, step.sector + step.sectors
        request = self._find(start, end)
        if request is not None:
            self._remove(request)
        if step.is_issue:
            return request
        if request is None:
            request = Seen(step.pid, start, end, hidden=True)
        request.start, request.end = start, end  # only now are the ends of a hidden request known
        request.inserted = True
        if not step.is_merge:
            return self._add(request)
        target = next((candidate for candidate in self._by_end.get(start, ()) if candidate.inserted), None)
        if target is not None:
            self._remove(target)
            target.end = end
            target.hidden = target.hidden or request.hidden
            self._add(target)
        return request

    def _find(self, start: int, end: int) -> Seen | None:
        """Return the request from *start* to *end*, else a hidden one with one of these ends."""
        neighbours = *self._by_start.get(start, ()), *self._by_end.get(end, ())
        whole = (request for request in neighbours if request.start == start and request.end == end)
        return next(whole, None) or next((request for request in neighbours if request.hidden), None)

    def _add(self, request: Seen) -> Seen:
        self._by_start[request.start].append(request)
        self._by_end[request.end].append(request)
        return request

    def _remove(self, request: Seen) -> None:
        for index, end in ((self._by_start, request.start), (self._by_end, request.end)):
            index[end].remove(request)
            if not index[end]:
                del index[end]


def _open_to(request: Seen, pid: int) -> bool:
    return request.inserted or request.pid == pid


def _joinable(neighbours: tuple[Seen, ...] | list[Seen], pid: int) -> Seen | None:
    """Return the request that task *pid* joins: prefer requests that are shown, then its own plug's."""
    candidates = [request for request in neighbours if _open_to(request, pid)]
    return min(candidates, key=lambda request: (request.hidden, request.inserted), default=None)
