"""Replay a capture: the same bios, with its plug boundaries, through the simulator's block layer.

Each task's bios go through a `models.block.plug.Plug` of its own, and what leaves a plug towards a
scheduler waits in a `models.block.elevator`; both are what the simulator runs.  Two things are judged, one by
one: what became of each bio (backmerge, frontmerge, getrq), and whether a new request flushed the plug that
it came to.

What a capture does not say is counted, not guessed: how many segments a bio of several pages has
(`Verdict.by_segments`: one a page, less where the kernel's own merges prove less), and when a request
left the scheduler (`Verdict.in_dispatch`).  Both lean on the kernel's answer, and both can still be refuted:
a merge has to fit with one segment a bio, and a request in dispatch has to be issued by the next dispatch of
the task that issues it, and never to be joined again.  With nomerges 1, which request
merged last is taken from the kernel's merges, too: when the one before it left is not shown either.  The
simulated plugs follow the simulator's own decisions, those of other devices' bios the kernel's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from wbsim.experiments.captures.events import rwbs_of
from wbsim.experiments.captures.story import Emptied, Left, Moved, Piece, Placed, Step
from wbsim.experiments.captures.waiting import Waiting
from wbsim.models.bio import Bio, Request
from wbsim.models.block.merge import BACK, FRONT, NEW, Merge, bounds_of, would_join, would_merge
from wbsim.models.block.plug import Plug
from wbsim.models.block.spec import PlugRules, QueueLimits
from wbsim.sim.units import PAGE_BYTES, SECTOR_BYTES

SHOWN: Final = 20
"""How many mismatches are kept."""


class Mismatch(NamedTuple):
    """One judgement in which simulator and kernel differ."""

    line: int
    what: str
    kernel: str
    simulated: str


@dataclass
class Verdict:
    """How the simulator's block layer compares with the kernel's, on one device.

    ``full_flush_unknown``: flushes that may as well have been a sleep; ``by_segments``: merges that show a
    bio to have fewer segments than pages; ``in_dispatch``: bios that did not join a request because it had
    left its queue, as its issue right afterwards shows; ``unjudged``: decisions of tasks whose plug, or
    on a queue which, is unknown after lost events.  The first and the last are in no total.
    """

    bios: int = 0
    decisions_equal: int = 0
    decisions_total: int = 0
    full_flush_equal: int = 0
    full_flush_total: int = 0
    full_flush_unknown: int = 0
    by_segments: int = 0
    in_dispatch: int = 0
    unjudged: int = 0
    events_lost: int = 0
    requests_kernel: int = 0
    requests_simulated: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether everything that was judged is equal."""
        return self.decisions_equal == self.decisions_total and self.full_flush_equal == self.full_flush_total


def replay(
    story: Iterable[Step], rules: PlugRules, limits: QueueLimits, scheduler: str, device: str
) -> Verdict:
    """Judge every decision on *device* ("major,minor") that *story* tells."""
    judge = _Judge(rules, limits, scheduler, sys.intern(device))
    for step in story:
        judge.take(step)
    return judge.verdict


class _Doubt(NamedTuple):
    """The kernel did not merge where the simulator would, as if the request were in dispatch."""

    line: int
    simulated: str


class _Runs:
    """Dispatches: issues of one task with nothing else of it in between.

    A dispatch takes requests out of their queue first and issues them then.  So a request that had left by
    some line is issued in its task's run that was under way, or in the next one, and never after a
    whole run that began later.
    """

    def __init__(self) -> None:
        self._starts: dict[int, tuple[int, int]] = {}  # the lines of a task's run and of the one before it
        self._broken: set[int] = set()

    def issued(self, pid: int, line: int) -> int:
        """*pid* issued a request; the line in which its run before this one began."""
        current, before = self._starts.get(pid, (0, 0))
        if pid in self._broken or not current:
            current, before = line, current
            self._starts[pid] = current, before
            self._broken.discard(pid)
        return before

    def broken_by(self, pid: int) -> None:
        """*pid* did something else."""
        self._broken.add(pid)


class _Judge:
    def __init__(self, rules: PlugRules, limits: QueueLimits, scheduler: str, device: str) -> None:
        self._rules = rules
        self._limits = limits
        self._bounds = bounds_of(limits, rules)
        self._scheduler = scheduler
        self._device = device
        self.verdict = Verdict()
        self._forget()
        self._complete = True

    def _forget(self) -> None:
        """Nothing is known of any plug or queue."""
        self._plugs: dict[int, Plug] = {}
        self._newest: dict[int, Bio | None] = {}  # of each task: what awaits its place, None if it merged
        self._early: dict[int, tuple[Bio, Merge]] = {}
        self._was_full: dict[int, bool | None] = {}  # of plugs that were sent on: whether they were full
        self._on_its_way: dict[int, Request] = {}  # left a plug, by start sector
        self._waiting = Waiting(self._scheduler, self._bounds)
        self._runs = _Runs()
        self._doubts: dict[int, _Doubt] = {}  # by the start sector of the request
        self._complete = False

    def take(self, step: Step) -> None:
        if isinstance(step, Piece):
            self._decide(step)
        elif isinstance(step, Placed):
            self._place(step)
        elif isinstance(step, Moved):
            if step.device == self._device:
                self._move(step)
        elif isinstance(step, Left):
            self._was_full[step.pid] = self._is_full(step.pid)
            self._flush(step.pid)
        elif isinstance(step, Emptied):
            if step.queued is not None:
                bio = bio_of(step.queued)
                self._early[step.pid] = bio, self._plug(step.pid).attempt_merge(bio, self._bounds)
            self._flush(step.pid)
        else:
            self.verdict.events_lost += step.events
            self._forget()

    def _plug(self, pid: int) -> Plug:
        plug = self._plugs.get(pid)
        if plug is None:
            plug = self._plugs[pid] = Plug(self._rules)
        return plug

    def _flush(self, pid: int) -> None:
        for request in self._plug(pid).take():
            if request.queue is self._device:
                self._on_its_way[request.start_sector] = request

    def _move(self, moved: Moved) -> None:
        if moved.issued:
            before = self._runs.issued(moved.pid, moved.line)
            doubt = self._doubts.pop(moved.sector, None)
            if doubt is not None and before > doubt.line:
                self._contradict(doubt)
            self._waiting.issue(moved.sector)
            self._on_its_way.pop(moved.sector, None)
            return
        self._runs.broken_by(moved.pid)
        request = self._on_its_way.pop(moved.sector, None)
        if request is None:
            return
        for other in self._waiting.touching(request.bios[0], moved.pid, moved.cpu):
            if other.end_sector == request.start_sector:
                if moved.merged:
                    self._fit(request, other)
                elif would_join(other, request, self._bounds):
                    self._waiting.leave(other)
        self._waiting.insert(request, moved.pid, moved.cpu, moved.line)

    def _decide(self, piece: Piece) -> None:
        self._runs.broken_by(piece.pid)
        kernel = piece.merge
        assert kernel is not None
        plug = self._plug(piece.pid)
        if piece.device != self._device:
            self._newest[piece.pid] = None if _follow(plug, bio_of(piece), kernel) else bio_of(piece)
            return
        early = self._early.pop(piece.pid, None)
        if early is not None and early[0].start_sector == piece.sector:
            bio, simulated = early
        else:
            bio = bio_of(piece)
            if kernel is not NEW:
                for request in plug.requests:
                    if _touch(request, bio):
                        self._fit(bio, request)
            simulated = plug.attempt_merge(bio, self._bounds)
        if simulated is NEW:
            simulated = self._merge_in_queue(bio, piece, kernel)
        self._judge_decision(piece, kernel, simulated)
        self._newest[piece.pid] = bio if kernel is simulated is NEW else None
        if kernel is not NEW and simulated is NEW:
            plug.add(Request(bio))

    def _judge_decision(self, piece: Piece, kernel: Merge, simulated: Merge) -> None:
        verdict = self.verdict
        verdict.bios += piece.first
        verdict.requests_kernel += kernel is NEW
        if not piece.known or (simulated is NEW and kernel is not NEW and not self._complete):
            verdict.unjudged += 1
            verdict.requests_simulated += kernel is NEW
            return
        verdict.requests_simulated += simulated is NEW
        verdict.decisions_total += 1
        verdict.decisions_equal += self._equal(piece.line, "decision", kernel.value, simulated.value)

    def _merge_in_queue(self, bio: Bio, piece: Piece, kernel: Merge) -> Merge:
        """What becomes of *bio* among the requests that wait for the driver."""
        waiting = self._waiting
        touching = waiting.touching(bio, piece.pid, piece.cpu)
        if kernel is NEW:
            for request in touching:
                if waiting.since(request) > piece.tried:
                    return NEW  # it came while this bio waited for a tag
                if would_merge(request, bio, self._bounds):
                    self.verdict.in_dispatch += 1
                    simulated = BACK if request.end_sector == bio.start_sector else FRONT
                    self._doubts[request.start_sector] = _Doubt(piece.line, simulated.value)
                    waiting.leave(request)
        else:
            if not touching and (recalled := waiting.recall(bio)) is not None:
                self._contradict(self._doubts.pop(recalled, None))
            if not touching and self._limits.nomerges == 1:
                waiting.set_one_hit(bio, piece.pid, piece.cpu)
            for request in waiting.touching(bio, piece.pid, piece.cpu):
                self._fit(bio, request)
        return waiting.attempt_merge(bio, piece.pid, piece.cpu)

    def _contradict(self, doubt: _Doubt | None) -> None:
        """The request that a bio did not join was not in dispatch: the simulator would have merged them."""
        if doubt is not None:
            self.verdict.in_dispatch -= 1
            self.verdict.decisions_equal -= not self._equal(
                doubt.line, "decision", NEW.value, doubt.simulated
            )

    def _fit(self, joining: Bio | Request, request: Request) -> None:
        """The kernel merged the two: they have fewer segments than pages, down to one a bio."""
        most = self._limits.max_segments
        if request.segments + joining.segments > most:
            self.verdict.by_segments += 1
            fewest = len(getattr(joining, "bios", (joining,)))  # one a bio
            request.segments = max(len(request.bios), min(request.segments, most - fewest))
            joining.segments = max(fewest, min(joining.segments, most - request.segments))

    def _place(self, placed: Placed) -> None:
        piece = placed.piece
        sent_on = piece.pid in self._was_full
        full = self._was_full.pop(piece.pid) if sent_on else self._is_full(piece.pid)
        bio = self._newest.pop(piece.pid, None)
        if bio is None:
            return
        request = Request(bio)
        if not placed.plugged:
            if bio.queue is self._device:
                self._on_its_way[request.start_sector] = request
            return
        if placed.flushed is not None and full is not None and piece.known and bio.queue is self._device:
            self._judge_flush(placed, full)
        if full and not sent_on:
            self._flush(piece.pid)
        self._plug(piece.pid).add(request)

    def _is_full(self, pid: int) -> bool | None:
        """Whether the plug has to be flushed before it takes the task's newest bio; None if it holds
        nothing.
        """
        plug, bio = self._plug(pid), self._newest.get(pid)
        return plug.must_flush(bio.queue, self._bounds) if bio is not None and plug.requests else None

    def _judge_flush(self, placed: Placed, full: bool) -> None:
        verdict = self.verdict
        if placed.flushed and not placed.sure and not full:
            verdict.full_flush_unknown += 1
            return
        verdict.full_flush_total += 1
        said = {True: "flushed", False: "kept"}
        verdict.full_flush_equal += self._equal(
            placed.piece.line, "full flush", said[bool(placed.flushed)], said[full]
        )

    def _equal(self, line: int, what: str, kernel: str, simulated: str) -> bool:
        if kernel != simulated and len(self.verdict.mismatches) < SHOWN:
            self.verdict.mismatches.append(Mismatch(line, what, kernel, simulated))
        return kernel == simulated


def bio_of(piece: Piece) -> Bio:
    """The bio of *piece*, with one segment for each page it may lie in; a discard has none."""
    rwbs = rwbs_of(piece.rwbs)
    pages = -(-piece.sectors * SECTOR_BYTES // PAGE_BYTES)
    return Bio(
        piece.sector,
        piece.sectors,
        segments=0 if rwbs.op == "D" else max(1, pages),
        op=rwbs.op,
        queue=sys.intern(piece.device),
        sync=rwbs.sync,
        meta=rwbs.meta,
        nomerge=rwbs.flushes or piece.split_off,
    )


def _follow(plug: Plug, bio: Bio, kernel: Merge) -> bool:
    """Another device's *bio*, whose limits are not known, joins the plugged request that the kernel joined it
    to.
    """
    for request in plug.requests if kernel is not NEW else ():
        if _touch(request, bio):
            request.start_sector = min(request.start_sector, bio.start_sector)
            request.end_sector = max(request.end_sector, bio.end_sector)
            request.bios.append(bio)
            return True
    return kernel is not NEW


def _touch(request: Request, bio: Bio) -> bool:
    return request.queue is bio.queue and (
        request.end_sector == bio.start_sector or request.start_sector == bio.end_sector
    )
