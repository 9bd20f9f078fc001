"""The kernel's decision on each bio, derived from the order of a task's events.

A line says that a bio merged or got a request.  The task's next events show whether that request went into
the task's plug, and whether the plug was flushed first to make room:

    getrq, plug                     the request is the first in the plug
    getrq, unplug N, ..., plug      N plugged requests were flushed first (a full flush, or a sleep)
    getrq, unplug N + 1             the request joined N plugged requests, and then the plug was flushed
    getrq, any other event          the request joined the plugged requests; an empty plug was bypassed

A plug with requests of several queues is flushed with one unplug for each queue, so their counts are summed.
Flushes (FLUSH, PREFLUSH, FUA) never go into a plug.  After lost events a task's plug is unknown until its
next plug or unplug.  An unplug of more requests than the task's plug held proves hidden requests (`Unseen`).
Hidden requests began before the capture, or belong to a device that the capture does not record.

A *step* is one fact that the events show, such as a decision (`Piece`) or the place of its request
(`Placed`).  Other steps are the end of a plug (`Left`, `Emptied`), a move of a request (`Moved`) or a gap
(`Lost`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from wbsim.experiments.captures.events import (
    BACKMERGE,
    FRONTMERGE,
    GETRQ,
    INSERT,
    ISSUE,
    LOST,
    NO_SECTORS,
    PLUG,
    QUEUE,
    RQ_MERGE,
    SPLIT,
    UNPLUG,
    Event,
    rwbs_of,
)
from wbsim.models.block.merge import BACK, FRONT, NEW, Merge

MOVES: Final = frozenset((INSERT, ISSUE, RQ_MERGE))
DECISIONS: Final = {BACKMERGE: BACK, FRONTMERGE: FRONT, GETRQ: NEW}


class Piece(NamedTuple):
    """A bio, or a part of a split bio, and the kernel's decision on it.

    * ``merge``: the decision; None in `Emptied`, where the kernel has not decided yet.
    * ``first``: this piece is the first of its bio.
    * ``split_off``: more of the bio follows, so that this piece never merges.
    * ``attempt_line``: the line at which the kernel tried to merge the piece; 0: before the capture or in a
      gap.  The decision may follow many lines later, after a wait for a tag.
    * ``plug_known``: the contents of the task's plug are known.
    """

    line: int
    pid: int
    cpu: int
    device: str
    rwbs: str
    sector: int
    sectors: int
    merge: Merge | None
    first: bool
    split_off: bool
    attempt_line: int
    plug_known: bool


class Placed(NamedTuple):
    """The destination of the request of ``piece``.

    * ``plugged``: the request is in the task's plug; otherwise it bypassed the plug.
    * ``flushed``: the plug was flushed to make room; None: the plug was empty, or the task slept.
    * ``sure``: the capture shows whether a flush is a full flush or a sleep.
    """

    piece: Piece
    plugged: bool
    flushed: bool | None
    sure: bool = True


class Left(NamedTuple):
    """The plug of task *pid* was flushed before its new request is placed; `Placed` gives the reason."""

    pid: int


class Emptied(NamedTuple):
    """The plug of task *pid* ended or was flushed by a sleep; ``queued``: a bio without decision, or None."""

    pid: int
    queued: Piece | None


class Unseen(NamedTuple):
    """The plug of task *pid* has held hidden requests since it was last known to be empty."""

    pid: int


class Moved(NamedTuple):
    """A request was inserted, merged into a waiting request (``is_merge``), or issued (``is_issue``)."""

    line: int
    pid: int
    cpu: int
    device: str
    sector: int
    sectors: int
    is_merge: bool
    is_issue: bool
    rwbs: str


class Lost(NamedTuple):
    """The recorder dropped *events*; 0 if it did not count them."""

    events: int


class Passed(NamedTuple):
    """An event of a request without sectors for *device*."""

    device: str | None


Step = Piece | Placed | Left | Emptied | Unseen | Moved | Lost | Passed


class _Bio:
    """The part of a queued bio without a decision.

    ``plug_known``: the contents of the task's plug were known before the plug was flushed.
    """

    __slots__ = ("attempt_line", "device", "end", "first", "plug_known", "rwbs", "split", "start")

    def __init__(self, event: Event) -> None:
        self.device = event.device
        self.rwbs = event.rwbs
        self.start = event.sector
        self.end = event.sector + event.size
        self.first = True
        self.attempt_line = event.line
        self.split: int | None = None
        self.plug_known = True


class _Task:
    """The state of one task, as far as the capture shows it."""

    __slots__ = (
        "asleep", "bios", "devices", "first_move", "flushing", "fresh", "has_decision", "plug_known",
        "plugged", "sent_on",
    )  # fmt: skip

    def __init__(self, plug_known: bool) -> None:
        self.bios: list[_Bio] = []
        self.plugged = 0
        self.devices: set[str] = set()  # the devices of the plugged requests
        self.flushing = False  # the latest event is an unplug
        self.has_decision = False  # the capture shows a decision of this task
        self.plug_known = plug_known
        self.fresh: Piece | None = None  # the piece whose request is not placed yet
        self.sent_on = 0  # the requests that unplugs have flushed since `fresh` was set
        self.asleep: bool | None = None  # `Event.asleep` of these unplugs
        self.first_move = ""  # the name of the first move after these unplugs

    def add(self, fresh: Piece) -> None:
        """Add the request of *fresh* to the plug."""
        self.plugged += 1
        self.devices.add(fresh.device)
        self.fresh = None

    def empty(self) -> None:
        """Empty the plug."""
        self.plugged, self.flushing = 0, False
        self.devices.clear()


def _move(task: _Task | None, event: Event) -> Moved:
    """Return the step of *event*; record in *task* the first move since its plug was flushed."""
    if task is not None and task.sent_on and not task.first_move:
        task.first_move = event.name
    assert event.device is not None
    merges, issues = event.name == RQ_MERGE, event.name == ISSUE
    return Moved(
        event.line, event.pid, event.cpu, event.device, event.sector, event.size, merges, issues, event.rwbs
    )


def steps_of(events: Iterable[Event], scheduler: str | None) -> Iterator[Step]:
    """Yield the steps of *events* in the order in which they become certain; a task's steps keep their order.

    *events*: those of a capture, in its order; an error in reading them is passed on.  `replay` and `what_if`
    take the steps.

    *scheduler*: that of the queue; None counts as "none".  With any other one, a flush of the plug inserts
    its requests even if the task does not sleep.  So a sleep is then unknown, unless the event says so.
    """
    tasks: dict[int, _Task] = {}
    flush_issues = scheduler in (None, "none")
    complete = True
    for event in events:
        name = event.name
        if name in MOVES:
            yield _move(tasks.get(event.pid), event)
        elif name == NO_SECTORS:
            yield Passed(event.device)
        elif name == LOST:
            complete = False
            for task in tasks.values():
                if task.fresh is not None:
                    yield Placed(task.fresh._replace(plug_known=False), False, None)
            tasks.clear()
            yield Lost(event.size)
        else:
            entry = tasks.get(event.pid)
            task = _Task(complete) if entry is None else entry
            tasks[event.pid] = task
            yield from _follow(task, event, flush_issues)
    for pid, task in tasks.items():
        if task.fresh is not None:
            if task.sent_on > task.plugged and task.plug_known:
                yield Unseen(pid)
            plugged = task.plugged > 0 and not rwbs_of(task.fresh.rwbs).flushes
            yield Placed(task.fresh, plugged, False if plugged else None, sure=not plugged)


def _follow(task: _Task, event: Event, flush_issues: bool) -> Iterator[Step]:
    """Yield the steps of *task* that its next *event* makes certain."""
    name = event.name
    if task.flushing and name != UNPLUG:
        task.empty()
    if task.fresh is not None and name != SPLIT:
        yield from _settle(task, task.fresh, event, flush_issues)
    if name == QUEUE:
        task.bios.append(_Bio(event))
    elif name == UNPLUG:
        if task.fresh is None:
            yield Emptied(event.pid, _queued(task, event))
            task.plugged -= event.size
            task.flushing = True
            if task.plugged < 0 and task.plug_known:
                yield Unseen(event.pid)
            task.plug_known = True
    elif name == SPLIT:
        for bio in task.bios:
            if bio.start == event.sector and bio.device == event.device:
                bio.split, bio.attempt_line = event.size, event.line
    elif name == PLUG:
        task.plug_known = True
    else:
        piece = _piece(task, event)
        yield piece
        if piece.merge is NEW:
            task.fresh = piece


def _settle(task: _Task, fresh: Piece, event: Event, flush_issues: bool) -> Iterator[Step]:
    """Yield the destination of the request of *fresh*, as the task's next *event* shows."""
    plug_size, name = task.plugged, event.name
    if name == UNPLUG:
        if plug_size and task.sent_on + event.size == plug_size + 1:
            task.add(fresh)
            task.plugged -= task.sent_on  # earlier unplugs of this flush took these requests
            task.sent_on, task.first_move = 0, ""
            yield Placed(fresh, True, False)
            return
        if not task.sent_on:
            yield Left(event.pid)
        task.sent_on += event.size
        task.asleep = event.asleep
    elif task.sent_on:
        # A sleep in schedule() inserts the requests (blk_mq_flush_plug_list from_schedule).  A full plug
        # issues them.
        asleep = task.first_move == INSERT if task.asleep is None and flush_issues else task.asleep
        if task.sent_on > plug_size and task.plug_known:
            yield Unseen(event.pid)
            fresh = fresh._replace(plug_known=False)
        task.sent_on, task.first_move = 0, ""
        task.empty()
        if name != PLUG:
            task.fresh = None
            yield Placed(fresh, False, None)
            yield Emptied(event.pid, None)
            return
        task.add(fresh)
        if asleep:
            yield Emptied(event.pid, None)
        yield Placed(fresh, True, None if asleep else True, sure=asleep is not None)
    elif name == PLUG:
        # Kernels to 4.x count a plug's requests by queue and trace a plug event for each queue.  Later
        # kernels trace one only for the first request.
        if fresh.device in task.devices:
            task.empty()
        task.add(fresh)
        yield Placed(fresh, True, None)
    else:
        plugged = plug_size > 0 and not rwbs_of(fresh.rwbs).flushes
        if plugged:
            task.add(fresh)
        task.fresh = None
        yield Placed(fresh, plugged, False if plugged else None)


def _piece(task: _Task, event: Event) -> Piece:
    """Return the decision of *event* with the values of its bio."""
    first, split_off, plug_known = True, False, task.plug_known
    attempt_line = event.line if task.has_decision else 0
    task.has_decision = True
    for bio in task.bios:
        if bio.start == event.sector and bio.device == event.device:
            first, attempt_line = bio.first, bio.attempt_line
            plug_known = plug_known and bio.plug_known
            bio.start += event.size
            bio.split, bio.plug_known, bio.first, bio.attempt_line = None, True, False, event.line
            split_off = bio.start < bio.end
            if not split_off:
                task.bios.remove(bio)
            break
    assert event.device is not None
    return Piece(
        event.line, event.pid, event.cpu, event.device, event.rwbs, event.sector, event.size,
        DECISIONS[event.name], first, split_off, attempt_line, plug_known,
    )  # fmt: skip


def _queued(task: _Task, event: Event) -> Piece | None:
    """Return the oldest bio without a decision, while the plug is flushed; None: none is queued."""
    if not task.bios:
        return None
    bio = task.bios[0]
    bio.plug_known = task.plug_known
    end = bio.split or bio.end
    assert bio.device is not None
    return Piece(
        event.line, event.pid, event.cpu, bio.device, bio.rwbs, bio.start, end - bio.start,
        None, bio.first, end < bio.end, bio.attempt_line, task.plug_known,
    )  # fmt: skip
