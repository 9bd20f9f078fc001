"""Replay a capture: send its bios, with its plug boundaries, through the simulator's block layer.

The bios of each task go through a `models.block.plug.Plug`.  Requests that leave a plug for a scheduler wait
in a `models.block.elevator`.  The simulator runs the same two modules.  The replay judges two kinds of
decisions: the fate of each bio (backmerge, frontmerge, getrq), and whether a new request flushed its plug.

A capture lacks two facts.  The replay takes them from the kernel's decisions and counts the cases:

* The segments of a bio (`Verdict.by_segments`): one a page, or fewer if the kernel's merges prove fewer.
* The time at which a request left the scheduler (`Verdict.in_dispatch`).

Both assumptions can be refuted.  A merge must fit with one segment a bio.  A request in dispatch must be
issued in the current or the next dispatch of its task, and no bio may join the request later.

With nomerges 1 a bio is tried only against the request that merged last.  The capture does not show when that
request leaves, so the replay takes the last merge from the kernel's merges.  For bios of the judged device,
the simulated plugs follow the simulator's decisions; for bios of other devices, the kernel's.

Decisions are not judged if the capture hides what they depend on.  The hidden part is a request whose
beginning is not shown (`requests`), or a plug that held more requests than are shown (`episodes`).
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
    """Return the verdict on every decision on *device* ("major,minor") in *steps*, which `steps_of` yields.

    *steps* are those of the whole capture, also of other devices.  *rules*, *limits* and *scheduler* are
    those of the captured kernel: the simulator decides by them.  `wbsim replay` and `wbsim.Capture` call
    this.
    """
    judge = _Judge(rules, limits, scheduler, sys.intern(device))
    for step in steps:
        judge.take(step)
    return judge.verdict


class _Doubt(NamedTuple):
    """A bio that the kernel did not merge and the simulator would: the request may have been in dispatch."""

    line: int
    simulated: str
    episode: Episode


class _Runs:
    """The runs of all tasks.  A run is a dispatch: issues of one task without other events between them.

    A dispatch first takes requests out of their queue and then issues them.  So a request that has left its
    queue is issued in the run that is under way then, or in the next run.
    """

    def __init__(self) -> None:
        self._starts: dict[int, tuple[int, int]] = {}  # the first lines of a task's last two runs
        self._broken: set[int] = set()

    def issue(self, pid: int, line: int) -> int:
        """Record that *pid* issued a request at *line*; return the line where its previous run began."""
        current, previous = self._starts.get(pid, (0, 0))
        if pid in self._broken or not current:
            current, previous = line, current
            self._starts[pid] = current, previous
            self._broken.discard(pid)
        return previous

    def broken_by(self, pid: int) -> None:
        """Record another event of *pid*, which ends its run."""
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
        """Drop the state of all plugs and queues, which is unknown now."""
        self._plugs: dict[int, Plug] = {}
        self._newest: dict[int, Bio | None] = {}  # by task: the bio to be placed; None: it merged
        self._early: dict[int, tuple[Bio, Merge]] = {}
        self._was_full: dict[int, bool | None] = {}  # by task, after `Left`: whether the plug was full
        self._on_its_way: dict[int, Request] = {}  # requests that left a plug, by start sector
        self._queues = Waiting(self._scheduler, self._bounds)
        self._runs = _Runs()
        self._doubts: dict[int, _Doubt] = {}  # by the start sector of the request
        self._requests = Requests()
        self._fresh: dict[int, Seen] = {}  # by task: the kernel's request that is to be placed
        self._episodes: dict[int, Episode] = {}
        self._complete = False

    def take(self, step: Step) -> None:
        """Follow *step*, and judge its decision if it has one."""
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
            self._episode(step.pid).is_over = True
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
        for request in self._plug(pid).take(direct=True):
            if request.queue is self._device:
                self._on_its_way[request.start_sector] = request

    def _move(self, step: Moved) -> None:
        kernel_request = self._requests.move(step)
        if step.is_issue:
            previous_start = self._runs.issue(step.pid, step.line)
            doubt = self._doubts.pop(step.sector, None)
            if doubt is not None and previous_start > doubt.line:
                self._contradict(doubt)
            self._queues.issue(step.sector)
            self._on_its_way.pop(step.sector, None)
            return
        self._runs.broken_by(step.pid)
        request = self._on_its_way.pop(step.sector, None)
        if (request is None or (kernel_request is not None and kernel_request.hidden)) and not step.is_merge:
            # bios are tried in the order of insertion, so unknown requests also take their place in it
            request = Request(bio_of(step))
        if request is None:
            return
        for neighbour in self._queues.neighbours(request.bios[0], step.pid, step.cpu):
            if neighbour.end_sector == request.start_sector:
                if step.is_merge:
                    self._fit(request, neighbour)
                elif would_join(neighbour, request, self._bounds):
                    self._queues.leave(neighbour)
        self._queues.insert(request, step.pid, step.cpu, step.line)

    def _decide(self, piece: Piece) -> None:
        self._runs.broken_by(piece.pid)
        kernel = piece.merge
        assert kernel is not None
        if self._episode(piece.pid).is_over:
            self._episodes[piece.pid] = Episode()
        plug = self._plug(piece.pid)
        if piece.device != self._device:
            self._newest[piece.pid] = None if _follow(plug, bio_of(piece), kernel) else bio_of(piece)
            return
        early = self._early.pop(piece.pid, None)
        if not self._is_shown(piece):
            self._set_aside(piece)
            if kernel is not NEW:
                self._queues.attempt_merge(bio_of(piece), piece.pid, piece.cpu)
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

    def _is_shown(self, piece: Piece) -> bool:
        """Follow the kernel's decision in *piece*; return whether the capture shows what it depends on."""
        episode, kernel = self._episode(piece.pid), piece.merge
        hidden_neighbour = kernel is NEW and self._requests.hidden_beside(piece)
        if kernel is NEW:
            kernel_request = self._requests.begin(piece, hidden=episode.hidden or not piece.plug_known)
            self._fresh[piece.pid] = kernel_request
        else:
            kernel_request = self._requests.joined_by(piece)
            if (
                not (kernel_request.hidden or kernel_request.plugged or kernel_request.inserted)
                and piece.plug_known
            ):
                # It seemed to bypass the plug, but a bio joined it: the plug holds hidden requests.
                episode.withdraw(self.verdict)
            kernel_request.hidden = kernel_request.hidden or not piece.plug_known
        if kernel is NEW or kernel_request.hidden:
            episode.requests.append(kernel_request)
        return piece.plug_known and not (kernel_request.hidden or hidden_neighbour or episode.hidden)

    def _set_aside(self, piece: Piece) -> None:
        """Count the decision in *piece* as not judged, by its reason."""
        verdict = self.verdict
        verdict.bios += piece.first
        verdict.requests_kernel += piece.merge is NEW
        verdict.requests_simulated += piece.merge is NEW
        verdict.unjudged += 1
        episode = self._episode(piece.pid)
        if episode.hidden:
            verdict.inside_plug += 1
        elif piece.plug_known and self._complete:
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
        queues = self._queues
        neighbours = queues.neighbours(bio, piece.pid, piece.cpu)
        if kernel is NEW:
            for request in neighbours:
                if queues.insertion_line(request) > piece.attempt_line:
                    return NEW  # the request was inserted while this bio waited for a tag
                if would_merge(request, bio, self._bounds):
                    self.verdict.in_dispatch += 1
                    simulated = BACK if request.end_sector == bio.start_sector else FRONT
                    self._doubts[request.start_sector] = _Doubt(
                        piece.line, simulated.value, self._episode(piece.pid)
                    )
                    queues.leave(request)
        else:
            if not neighbours and (recalled := queues.recall(bio)) is not None:
                self._contradict(self._doubts.pop(recalled, None))
            if not neighbours and self._limits.nomerges == 1:
                queues.set_one_hit(bio, piece.pid, piece.cpu)
            for request in queues.neighbours(bio, piece.pid, piece.cpu):
                self._fit(bio, request)
        return queues.attempt_merge(bio, piece.pid, piece.cpu)

    def _contradict(self, doubt: _Doubt | None) -> None:
        """Count the bio of *doubt* as judged and different, because the request was not in dispatch."""
        if doubt is not None and not doubt.episode.hidden:
            self.verdict.in_dispatch -= 1
            self._equal(doubt.line, "decision", NEW.value, doubt.simulated, doubt.episode)
            self.verdict.decisions_equal -= 1
            doubt.episode.decisions_equal -= 1

    def _fit(self, joining: Bio | Request, request: Request) -> None:
        """Reduce the segments of both, down to one a bio, so that they merge as the kernel merged them."""
        most = self._limits.max_segments
        if request.segments + joining.segments > most:
            self.verdict.by_segments += 1
            fewest = len(getattr(joining, "bios", (joining,)))  # one a bio
            request.segments = max(len(request.bios), min(request.segments, most - fewest))
            joining.segments = max(fewest, min(joining.segments, most - request.segments))

    def _place(self, step: Placed) -> None:
        piece = step.piece
        sent_on = piece.pid in self._was_full
        full = self._was_full.pop(piece.pid) if sent_on else self._is_full(piece.pid)
        bio = self._newest.pop(piece.pid, None)
        kernel_request = self._fresh.pop(piece.pid, None)
        if kernel_request is not None:
            kernel_request.plugged = step.plugged
        if bio is not None:
            self._follow_to(step, bio, full, sent_on=sent_on)
        if step.plugged and step.flushed is not False:
            self._episodes[piece.pid] = episode = Episode()
            if kernel_request is not None:  # it is alone in its plug, and the capture shows its beginning
                kernel_request.hidden = False
                episode.requests.append(kernel_request)

    def _follow_to(self, step: Placed, bio: Bio, full: bool | None, *, sent_on: bool) -> None:
        """Put the request of *bio* where the kernel put it; judge whether the plug was flushed first."""
        piece = step.piece
        request = Request(bio)
        if not step.plugged:
            if bio.queue is self._device:
                self._on_its_way[request.start_sector] = request
            return
        if step.flushed is not None and full is not None and piece.plug_known and bio.queue is self._device:
            self._judge_flush(step, full)
        if full and not sent_on:
            self._flush(piece.pid)
        self._plug(piece.pid).add(request)

    def _is_full(self, pid: int) -> bool | None:
        """Return whether the plug must be flushed before it takes the task's newest bio; None if empty."""
        plug, bio = self._plug(pid), self._newest.get(pid)
        return plug.must_flush(bio.queue, self._bounds) if bio is not None and plug.requests else None

    def _judge_flush(self, step: Placed, full: bool) -> None:
        verdict, episode = self.verdict, self._episode(step.piece.pid)
        if step.flushed != full and not step.sure:
            verdict.full_flush_unknown += 1
            return
        words = {True: "flushed", False: "kept"}
        equal = self._equal(step.piece.line, "full flush", words[bool(step.flushed)], words[full], episode)
        verdict.full_flush_total += 1
        verdict.full_flush_equal += equal
        episode.flushes += 1
        episode.flushes_equal += equal

    def _equal(self, line: int, judgement: str, kernel: str, simulated: str, episode: Episode) -> bool:
        """Return whether *kernel* equals *simulated*; record a difference in *episode* and the verdict."""
        if kernel == simulated:
            return True
        episode.differing.add(line)
        if len(self.verdict.mismatches) < SHOWN:
            self.verdict.mismatches.append(Mismatch(line, judgement, kernel, simulated))
        return False


def bio_of(piece: Piece | Moved) -> Bio:
    """Return a new bio with the sectors and flags of *piece*: a piece of a bio, or a request that moved.

    The bio has one segment for each page, at least one; a discard has none.  A bio that flushes, or of which
    more follows, never merges.  `what_if` uses this, too.
    """
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
    """Merge *bio* as the kernel did, because the limits of its device are unknown.

    Returns:
        Whether *bio* merged.
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
