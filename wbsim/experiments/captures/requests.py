"""The kernel's requests from getrq to issue, by the kernel's own decisions, as far as a capture shows them.

A bio may merge with a request that the capture does not show.  Such a request is *hidden*: it began before
the capture or in a gap.  The size of a hidden request is unknown, so decisions on it are not judged.
"""

from __future__ import annotations

from collections import defaultdict

from wbsim.experiments.captures.merge_decisions import Moved, Piece
from wbsim.models.block.merge import BACK


class Seen:
    """A request of task *pid* from sector *start* to *end*.

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
        """Add and return the new request of the bio of *piece*."""
        return self._add(Seen(piece.pid, piece.sector, piece.sector + piece.sectors, hidden=hidden))

    def joined_by(self, piece: Piece) -> Seen:
        """Return the request that the bio of *piece* merged with, extended by the bio.

        If the capture shows no such request, a hidden one is added.  A task's own plug is tried first.
        """
        start, end = piece.sector, piece.sector + piece.sectors
        beside = self._by_end.get(start, ()) if piece.merge is BACK else self._by_start.get(end, ())
        found = _joinable(beside, piece.pid)
        if found is None:
            return self._add(Seen(piece.pid, start, end, hidden=True))
        self._remove(found)
        found.start, found.end = min(found.start, start), max(found.end, end)
        return self._add(found)

    def hidden_beside(self, piece: Piece) -> bool:
        """Return whether the bio of *piece* touches a hidden request that its task might join."""
        beside = *self._by_end.get(piece.sector, ()), *self._by_start.get(piece.sector + piece.sectors, ())
        return any(seen.hidden and _open_to(seen, piece.pid) for seen in beside)

    def move(self, moved: Moved) -> Seen | None:
        """Return the request that was inserted, merged or issued; None if the capture did not show it."""
        start, end = moved.sector, moved.sector + moved.sectors
        found = self._at(start, end)
        if found is not None:
            self._remove(found)
        if moved.issued:
            return found
        if found is None:
            found = Seen(moved.pid, start, end, hidden=True)
        found.start, found.end = start, end  # only now are the ends of a hidden request known
        found.inserted = True
        if not moved.merged:
            return self._add(found)
        into = next((seen for seen in self._by_end.get(start, ()) if seen.inserted), None)
        if into is not None:
            self._remove(into)
            into.end = end
            into.hidden = into.hidden or found.hidden
            self._add(into)
        return found

    def _at(self, start: int, end: int) -> Seen | None:
        """Return the request from *start* to *end*, else a hidden one with one of these ends."""
        beside = *self._by_start.get(start, ()), *self._by_end.get(end, ())
        whole = (seen for seen in beside if seen.start == start and seen.end == end)
        return next(whole, None) or next((seen for seen in beside if seen.hidden), None)

    def _add(self, seen: Seen) -> Seen:
        self._by_start[seen.start].append(seen)
        self._by_end[seen.end].append(seen)
        return seen

    def _remove(self, seen: Seen) -> None:
        for index, end in ((self._by_start, seen.start), (self._by_end, seen.end)):
            index[end].remove(seen)
            if not index[end]:
                del index[end]


def _open_to(seen: Seen, pid: int) -> bool:
    return seen.inserted or seen.pid == pid


def _joinable(beside: tuple[Seen, ...] | list[Seen], pid: int) -> Seen | None:
    """Return the request that task *pid* joins: prefer requests that are shown, then its own plug's."""
    candidates = [seen for seen in beside if _open_to(seen, pid)]
    return min(candidates, key=lambda seen: (seen.hidden, seen.inserted), default=None)
