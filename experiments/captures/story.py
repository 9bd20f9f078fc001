"""What the kernel did with each bio, told from the order of a task's events.

A line says that a bio merged or got a request; whether that request went into the task's plug, and whether
the plug was flushed to make room for it, shows in what the task does next:

    getrq, plug                     it is the first in its plug
    getrq, unplug N, ..., plug      the N plugged ones were flushed first (a full flush, or a sleep)
    getrq, unplug N + 1             it joined the N plugged ones, and then the plug was flushed
    (a plug of several queues is flushed with one unplug for each: their counts are added up)
    getrq, anything else            it joined the plugged ones; with none plugged it went straight on

Flushes (FLUSH, PREFLUSH, FUA) never go into a plug.  Until the first plug or unplug after lost events nothing
is known of a task's plug.
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
    """A bio, or a part of one that was split, and what the kernel did with it.

    ``first``: of its bio.  ``split_off``: more of the bio follows, so that this piece never merges.
    ``tried``: the line at which the kernel tried to merge it, which a wait for a tag may keep far from its
    fate.  ``known``: what the task's plug holds is known.
    ``merge`` is None in `Emptied`, where the kernel has not decided yet.
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
    tried: int
    known: bool


class Placed(NamedTuple):
    """Where the request of *piece* went: into the task's plug, or straight on.

    ``flushed``: whether that flushed what the plug held; None where it held nothing or the task slept.
    ``sure``: the capture tells a full flush from a sleep.
    """

    piece: Piece
    plugged: bool
    flushed: bool | None
    sure: bool = True


class Left(NamedTuple):
    """What the task's plug held was sent on while *pid* has a request in hand; `Placed` will tell why."""

    pid: int


class Emptied(NamedTuple):
    """The task's plug was flushed by its end or by a sleep; ``queued``: a bio that still waits for its
    fate.
    """

    pid: int
    queued: Piece | None


class Moved(NamedTuple):
    """A request was inserted, or ``merged`` into a waiting one on insertion, or ``issued`` to the driver."""

    line: int
    pid: int
    cpu: int
    device: str
    sector: int
    sectors: int
    merged: bool
    issued: bool


class Lost(NamedTuple):
    """The recorder dropped *events*."""

    events: int


Step = Piece | Placed | Left | Emptied | Moved | Lost


class _Bio:
    """A queued bio: what of it has no decision yet; ``known`` is its task's, before its plug was flushed."""

    __slots__ = ("device", "end", "first", "known", "rwbs", "split", "start", "tried")

    def __init__(self, event: Event) -> None:
        self.device = event.device
        self.rwbs = event.rwbs
        self.start = event.sector
        self.end = event.sector + event.size
        self.first = True
        self.tried = event.line
        self.split: int | None = None
        self.known = True


class _Task:
    """What is known of one task."""

    __slots__ = ("asleep", "bios", "first_move", "fresh", "known", "plugged", "sent_on")

    def __init__(self, known: bool) -> None:
        self.bios: list[_Bio] = []
        self.plugged = 0
        self.known = known
        self.fresh: Piece | None = None  # got a request, and it is open where that went
        self.sent_on = 0  # how many requests the unplugs right after that flushed
        self.asleep: bool | None = None  # what these say of a sleep
        self.first_move = ""  # and what became of the first request afterwards


def _moved(task: _Task | None, event: Event) -> Moved:
    """The step of a request of *task*, of which the first since its plug was emptied is noted."""
    if task is not None and task.sent_on and not task.first_move:
        task.first_move = event.name
    assert event.device is not None
    merged, issued = event.name == RQ_MERGE, event.name == ISSUE
    return Moved(event.line, event.pid, event.cpu, event.device, event.sector, event.size, merged, issued)


def story_of(events: Iterable[Event], scheduler: str | None) -> Iterator[Step]:
    """The steps, in the order in which they become certain; a task's own steps are in its order.

    *scheduler* tells whether a plug's flush inserts its requests even when the task does not sleep.
    """
    tasks: dict[int, _Task] = {}
    flush_issues = scheduler in (None, "none")
    complete = True
    for event in events:
        name = event.name
        if name in MOVES:
            yield _moved(tasks.get(event.pid), event)
            continue
        if name == LOST:
            complete = False
            for task in tasks.values():
                if task.fresh is not None:
                    yield Placed(task.fresh._replace(known=False), False, None)
            tasks.clear()
            yield Lost(event.size)
            continue
        known = tasks.get(event.pid)
        task = _Task(complete) if known is None else known
        tasks[event.pid] = task
        if task.fresh is not None and name != SPLIT:
            yield from _settle(task, task.fresh, event, flush_issues)
        if name == QUEUE:
            task.bios.append(_Bio(event))
        elif name == UNPLUG:
            if task.fresh is None:
                yield Emptied(event.pid, _queued(task, event))
                task.plugged = 0
                task.known = True
        elif name == SPLIT:
            for bio in task.bios:
                if bio.start == event.sector and bio.device == event.device:
                    bio.split, bio.tried = event.size, event.line
        elif name == PLUG:
            task.known = True
        else:
            piece = _piece(task, event)
            yield piece
            if piece.merge is NEW:
                task.fresh = piece
    for task in tasks.values():
        if task.fresh is not None:
            plugged = task.plugged > 0 and not rwbs_of(task.fresh.rwbs).flushes
            yield Placed(task.fresh, plugged, False if plugged else None)


def _settle(task: _Task, fresh: Piece, event: Event, flush_issues: bool) -> Iterator[Step]:
    """Where the request of *fresh* went, seen from the task's next *event*."""
    held, name = task.plugged, event.name
    if name == UNPLUG:
        if held and task.sent_on + event.size == held + 1:
            task.sent_on, task.first_move, task.fresh = 0, "", None
            task.plugged += 1
            yield Placed(fresh, True, False)
            return
        if not task.sent_on:
            yield Left(event.pid)
        task.sent_on += event.size
        task.asleep = event.asleep
    elif task.sent_on:
        # schedule() has the requests inserted (blk_mq_flush_plug_list from_schedule), a full plug issues
        # them.
        asleep = task.first_move == INSERT if task.asleep is None and flush_issues else task.asleep
        task.sent_on, task.first_move, task.fresh = 0, "", None
        task.plugged = int(name == PLUG)
        if name != PLUG:
            yield Placed(fresh, False, None)
            yield Emptied(event.pid, None)
            return
        if asleep:
            yield Emptied(event.pid, None)
        yield Placed(fresh, True, None if asleep else True, sure=asleep is not None)
    elif name == PLUG:
        task.plugged, task.fresh = 1, None
        yield Placed(fresh, True, None)
    else:
        task.fresh = None
        plugged = held > 0 and not rwbs_of(fresh.rwbs).flushes
        task.plugged += plugged
        yield Placed(fresh, plugged, False if plugged else None)


def _piece(task: _Task, event: Event) -> Piece:
    """The decision in *event*, joined with the bio that it decides on."""
    first, split_off, known, tried = True, False, task.known, event.line
    for bio in task.bios:
        if bio.start == event.sector and bio.device == event.device:
            first, tried = bio.first, bio.tried
            known = known and bio.known
            bio.start += event.size
            bio.split, bio.known, bio.first, bio.tried = None, True, False, event.line
            split_off = bio.start < bio.end
            if not split_off:
                task.bios.remove(bio)
            break
    assert event.device is not None
    return Piece(
        event.line, event.pid, event.cpu, event.device, event.rwbs, event.sector, event.size,
        DECISIONS[event.name], first, split_off, tried, known,
    )  # fmt: skip


def _queued(task: _Task, event: Event) -> Piece | None:
    """The oldest bio that waits for its fate while the plug is flushed."""
    if not task.bios:
        return None
    bio = task.bios[0]
    bio.known = task.known
    end = bio.split or bio.end
    assert bio.device is not None
    return Piece(
        event.line, event.pid, event.cpu, bio.device, bio.rwbs, bio.start, end - bio.start,
        None, bio.first, end < bio.end, bio.tried, task.known,
    )  # fmt: skip
