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

Decisions are not judged if the capture hides what they depend on.  That is a request whose beginning is not
shown (`requests`), or a plug that held more than is shown (`episodes`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NamedTuple

from wbsim.experiments.captures.episodes import Episode
from wbsim.experiments.captures.events import rwbs_of
from wbsim.experiments.captures.merge_decisions import (
    Emptied,
    Left,
    Lost,
    Moved,
    Passed,
    Piece,
    Placed,
    Step,
    Unseen,
)
from wbsim.experiments.captures.requests import Requests, Seen
from wbsim.experiments.captures.verdict import SHOWN, Mismatch, Verdict
from wbsim.experiments.captures.waiting import Waiting
from wbsim.models.bio import Bio, Request
from wbsim.models.block.merge import BACK, FRONT, NEW, Merge, bounds_of, would_join, would_merge
from wbsim.models.block.plug import Plug
from wbsim.models.block.spec import PlugRules, QueueLimits
from wbsim.sim.units import PAGE_BYTES, SECTOR_BYTES


def replay(
    steps: Iterable[Step], rules: PlugRules, limits: QueueLimits, scheduler: str, device: str
) -> Verdict:
    """Return the verdict on every decision on *device* ("major,minor") in *steps*."""
    judge = _Judge(rules, limits, scheduler, sys.intern(device))
    for step in steps:
        judge.take(step)
    return judge.verdict


class _Doubt(NamedTuple):
    """The kernel did not merge where the simulator would, as if the request were in dispatch."""

    line: int
    simulated: str
    episode: Episode


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
        self._requests = Requests()
        self._fresh: dict[int, Seen] = {}  # of each task: the request that awaits its place
        self._episodes: dict[int, Episode] = {}
        self._complete = False

    def take(self, step: Step) -> None:
        """Follow *step*, and judge what it decides."""
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
            self._episode(step.pid).ended = True
        elif isinstance(step, Unseen):
            self._episodes[step.pid].withdraw(self.verdict)
        elif isinstance(step, Passed):
            self.verdict.without_sectors += step.device == self._device
        else:
            assert isinstance(step, Lost)
            self.verdict.events_lost += step.events
            self.verdict.uncounted_losses += not step.events
            self._forget()

    def _plug(self, pid: int) -> Plug:
        plug = self._plugs.get(pid)
        if plug is None:
            plug = self._plugs[pid] = Plug(self._rules)
        return plug

    def _episode(self, pid: int) -> Episode:
        episode = self._episodes.get(pid)
        if episode is None:
            episode = self._episodes[pid] = Episode()
        return episode

    def _flush(self, pid: int) -> None:
        for request in self._plug(pid).take():
            if request.queue is self._device:
                self._on_its_way[request.start_sector] = request

    def _move(self, moved: Moved) -> None:
        seen = self._requests.move(moved)
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
        if (request is None or (seen is not None and seen.hidden)) and not moved.merged:
            # the waiting requests are tried by their order, so each one has its place among them
            request = Request(bio_of(moved))
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
        if self._episode(piece.pid).ended:
            self._episodes[piece.pid] = Episode()
        plug = self._plug(piece.pid)
        if piece.device != self._device:
            self._newest[piece.pid] = None if _follow(plug, bio_of(piece), kernel) else bio_of(piece)
            return
        early = self._early.pop(piece.pid, None)
        if not self._shown(piece):
            self._set_aside(piece)
            if kernel is not NEW:
                self._waiting.attempt_merge(bio_of(piece), piece.pid, piece.cpu)
            self._newest[piece.pid] = bio_of(piece) if kernel is NEW else None
            return
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

    def _shown(self, piece: Piece) -> bool:
        """Follow the kernel's decision in *piece*; return whether the capture shows what it depends on."""
        episode, kernel = self._episode(piece.pid), piece.merge
        beside = kernel is NEW and self._requests.hidden_beside(piece)
        if kernel is NEW:
            seen = self._requests.begin(piece, hidden=episode.hidden or not piece.known)
            self._fresh[piece.pid] = seen
        else:
            seen = self._requests.joined_by(piece)
            if not (seen.hidden or seen.plugged or seen.inserted) and piece.known:
                episode.withdraw(self.verdict)  # it went past the plug, as far as the capture shows
            seen.hidden = seen.hidden or not piece.known
        if kernel is NEW or seen.hidden:
            episode.requests.append(seen)
        return piece.known and not (seen.hidden or beside or episode.hidden)

    def _set_aside(self, piece: Piece) -> None:
        """Count the decision in *piece* as not judged, and why."""
        verdict = self.verdict
        verdict.bios += piece.first
        verdict.requests_kernel += piece.merge is NEW
        verdict.requests_simulated += piece.merge is NEW
        verdict.unjudged += 1
        episode = self._episode(piece.pid)
        if episode.hidden:
            verdict.inside_plug += 1
        elif piece.known and self._complete:
            verdict.request_unseen += 1
            episode.request_unseen += 1

    def _judge_decision(self, piece: Piece, kernel: Merge, simulated: Merge) -> None:
        verdict, episode = self.verdict, self._episode(piece.pid)
        equal = self._equal(piece.line, "decision", kernel.value, simulated.value, episode)
        verdict.bios += piece.first
        verdict.requests_kernel += kernel is NEW
        verdict.requests_simulated += simulated is NEW
        verdict.decisions_total += 1
        verdict.decisions_equal += equal
        episode.decisions += 1
        episode.decisions_equal += equal
        episode.requests_more += (simulated is NEW) - (kernel is NEW)

    def _merge_in_queue(self, bio: Bio, piece: Piece, kernel: Merge) -> Merge:
        """Return the simulated fate of *bio* among the requests that wait for the driver."""
        waiting = self._waiting
        touching = waiting.touching(bio, piece.pid, piece.cpu)
        if kernel is NEW:
            for request in touching:
                if waiting.since(request) > piece.tried:
                    return NEW  # it came while this bio waited for a tag
                if would_merge(request, bio, self._bounds):
                    self.verdict.in_dispatch += 1
                    simulated = BACK if request.end_sector == bio.start_sector else FRONT
                    self._doubts[request.start_sector] = _Doubt(
                        piece.line, simulated.value, self._episode(piece.pid)
                    )
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
        if doubt is not None and not doubt.episode.hidden:
            self.verdict.in_dispatch -= 1
            self._equal(doubt.line, "decision", NEW.value, doubt.simulated, doubt.episode)
            self.verdict.decisions_equal -= 1
            doubt.episode.decisions_equal -= 1

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
        seen = self._fresh.pop(piece.pid, None)
        if seen is not None:
            seen.plugged = placed.plugged
        if bio is not None:
            self._follow_to(placed, bio, full, sent_on=sent_on)
        if placed.plugged and placed.flushed is not False:
            self._episodes[piece.pid] = episode = Episode()
            if seen is not None:  # it is alone in its plug, and shown from its beginning
                seen.hidden = False
                episode.requests.append(seen)

    def _follow_to(self, placed: Placed, bio: Bio, full: bool | None, *, sent_on: bool) -> None:
        """Put the request of *bio* where the kernel put it; judge whether that flushed the plug."""
        piece = placed.piece
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
        verdict, episode = self.verdict, self._episode(placed.piece.pid)
        if placed.flushed != full and not placed.sure:
            verdict.full_flush_unknown += 1
            return
        said = {True: "flushed", False: "kept"}
        equal = self._equal(placed.piece.line, "full flush", said[bool(placed.flushed)], said[full], episode)
        verdict.full_flush_total += 1
        verdict.full_flush_equal += equal
        episode.flushes += 1
        episode.flushes_equal += equal

    def _equal(self, line: int, what: str, kernel: str, simulated: str, episode: Episode) -> bool:
        """Return whether *kernel* is *simulated*; keep the difference, if any, for as long as it stands."""
        if kernel == simulated:
            return True
        episode.differing.add(line)
        if len(self.verdict.mismatches) < SHOWN:
            self.verdict.mismatches.append(Mismatch(line, what, kernel, simulated))
        return False


def bio_of(piece: Piece | Moved) -> Bio:
    """Return the bio of *piece*, with one segment for each page it may lie in; a discard has none."""
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
        nomerge=rwbs.flushes or (isinstance(piece, Piece) and piece.split_off),
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
