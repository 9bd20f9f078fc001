"""The plug for bios that come by the thousand: its requests as rows of an array.

`models.block.plug` has the rules; here they run compiled, over rows.  The parts of a row record which files'
pages it holds, so that each file is told of its own completions.  Rows become `Request` objects again when a
single bio joins them.  Where somebody watches, each row has its `Request` from the beginning: an observer
sees one object from the plug to the end of the request, with the bios that it was made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wbsim.models.arrays.compiled import compiled, portable
from wbsim.models.bio import Bio, Request
from wbsim.models.block.batch import Batch, EndIo, request_of, take_over, tell_all
from wbsim.models.block.merge import IS_NEW, Bounds, fits, grow, keep_bio
from wbsim.models.block.plug import Rules, is_full, issue_order, rules_of, walk
from wbsim.models.block.spec import PlugRules
from wbsim.sim.units import PAGE_SECTORS

portable(fits, grow, walk, is_full)

# Records, whose fields are attributes also where nothing is compiled (NUMBA_DISABLE_JIT).
_ROW: Final = np.dtype(
    (np.record,
     [("start_sector", "i8"), ("end_sector", "i8"), ("segments", "i4"), ("merges", "i4"), ("part", "i4"),
      ("queue", "i4"), ("op", "i4"), ("nomerge", "?"), ("meta", "?"), ("discard", "?")])
)  # fmt: skip
_ROW_BYTES: Final = np.dtype((np.void, _ROW.itemsize))
_TERMS: Final = np.dtype((np.record, [(term.name, "i8") for term in (*fields(Rules), *fields(Bounds))]))
"""`Rules` and `Bounds` as one row: quicker to hand to compiled code than objects."""
_STEP: Final = np.dtype(
    (np.record,
     [(name, "i8") for name in ("half", "held", "held_parts", "queue", "end", "allowance", "segment_pages",
                                "made", "done", "out", "out_parts", "flushes")])
)  # fmt: skip
"""A step of many bios, which compiled code reads and changes: rows and parts held; the number of its queue
and of its end_io; how many requests it may make, and the pages of a segment; then what it has done: requests
made, bios done, and the rows, parts and flushes issued.
"""
_OP: Final = "W"
_OP_CODE: Final = 0
_PART_ROW, _PART_END, _PART_PAGES = range(3)
_FLUSH_END, _FATE, _AT = range(3)
FLUSHED: Final = 4
"""Added to a fate: the new request flushed the plug first."""


class PluggedRuns:
    """The requests of one plug as rows, oldest first.

    The first half of the tables holds what is plugged, the second what the last step issued.
    """

    def __init__(self, rules: PlugRules) -> None:
        self._spec = rules
        self._terms = np.zeros(1, _TERMS)
        self._set_terms(rules_of(rules))
        self._bounds: Bounds | None = None
        self._half = 64
        self._rows = np.zeros(2 * self._half + 1, _ROW)  # the last is the bio at hand
        self._parts = np.zeros((2 * self._half, 3), np.int64)
        self._told = np.zeros((self._half, 3), np.int64)
        self._step = np.zeros(1, _STEP)
        self.held = self._held_parts = 0
        self._ends: list[EndIo] = []
        self._queues: list[Any] = []
        self._seen: list[Request] | None = None  # the rows as objects, where somebody watches
        self._flushed: list[Request] | None = None  # those that the last step flushed
        self.seen_bios: list[tuple[Bio, int]] = []
        """Where somebody watches: the bios of the last step, each with its fate: an index into
        `models.block.merge.FATES`, plus `FLUSHED` if its request flushed the plug first.
        """

    def load(self, requests: Sequence[Request]) -> None:
        """Hold *requests*, which are writes, as rows; nothing is held yet."""
        assert not self.held, "rows are loaded into an empty plug"
        self._make_room(len(requests))
        for at, request in enumerate(requests):
            assert request.op == _OP or request.nomerge, "a request that merges is a write"
            row = self._rows[at]
            row["start_sector"], row["end_sector"] = request.start_sector, request.end_sector
            row["segments"], row["merges"], row["nomerge"] = request.segments, request.merges, request.nomerge
            row["meta"] = request.meta
            row["queue"], row["part"] = self._number(request.queue), at
            row["op"], row["discard"] = _OP_CODE if request.op == _OP else _OP_CODE + 1, request.discard
            self._parts[at] = at, len(self._ends), request.sectors // PAGE_SECTORS
            self._ends.append(partial(_end_bios, request))
        self.held = self._held_parts = len(requests)

    def add(
        self,
        queue: Any,
        bios: NDArray[np.int64],
        segment_pages: int,
        end_io: EndIo,
        bounds: Bounds,
        allowance: int,
        watched: bool = False,
    ) -> tuple[int, int, list[Batch]]:
        """Submit *bios* (rows of first block and pages; *segment_pages* are a segment) to *queue*, in
        order, until *allowance* requests were made.

        Returns how many requests it made, how many bios are done, and the batches that flushes of a full
        plug issued meanwhile.
        """
        if not watched:
            self._seen = None
        elif self._seen is None:
            self._seen = [self._object(row) for row in self._rows[: self.held]]
        self._make_room(len(bios))
        if not self._ends or self._ends[-1] is not end_io:
            self._ends.append(end_io)
        if bounds is not self._bounds:
            self._bounds = bounds
            self._set_terms(bounds)
        self._step[0] = (
            self._half, self.held, self._held_parts, self._number(queue), len(self._ends) - 1, allowance,
            segment_pages, 0, 0, 0, 0, 0,
        )  # fmt: skip
        _submit_all(self._rows, self._parts, self._told, bios, self._terms, self._step)
        self.held, self._held_parts, *_, made, done, out, out_parts, flushes = self._step.item()[1:]
        self._flushed = None
        if self._seen is not None:
            self._see(queue, bios[:done], segment_pages)
        batches = []
        if flushes:
            half = self._half
            flush_ends = self._told[:flushes, _FLUSH_END].tolist()
            batches = self._batches(
                _copy(self._rows[half : half + out]), flush_ends, self._parts[half : half + out_parts],
                self._flushed,
            )  # fmt: skip
            self._ends = [end_io]
            self._parts[: self._held_parts, _PART_END] = 0
        return made, done, batches

    def take(self) -> list[Batch]:
        """Empty the plug: its requests in the order in which they are issued, queue by queue."""
        held = self.held
        batches = self._batches(_copy(self._rows[:held]), [held], self._parts[: self._held_parts], self._seen)
        self._clear()
        return batches

    def requests(self) -> list[Request]:
        """Empty the plug: its requests as objects, in the order of their coming."""
        parts = self._parts[: self._held_parts].tolist()
        requests = []
        for at, row in enumerate(self._rows[: self.held]):
            ends = [(self._ends[end], pages) for place, end, pages in parts if place == at]
            if self._seen is None:
                requests.append(request_of(row, self._queues[int(row["queue"])], ends))
                continue
            request = self._seen[at]
            take_over(request, row)
            request.bios[0].end_io = partial(tell_all, ends)
            requests.append(request)
        self._clear()
        return requests

    def _object(self, row: Any) -> Request:
        return request_of(row, self._queues[int(row["queue"])], [])

    def _see(self, queue: Any, bios: NDArray[np.int64], segment_pages: int) -> None:
        """Do with objects what the last step has done with rows."""
        assert self._seen is not None, "somebody watches"
        self.seen_bios, self._flushed = [], []
        for (block, pages), (_, fate, at) in zip(bios.tolist(), self._told.tolist(), strict=False):
            bio = Bio(
                block * PAGE_SECTORS, pages * PAGE_SECTORS, segments=-(-pages // segment_pages), queue=queue
            )
            self.seen_bios.append((bio, fate))
            if fate & FLUSHED:
                self._flushed += self._seen
                self._seen = []
            if fate & ~FLUSHED == IS_NEW:
                self._seen.append(Request(bio))
            else:
                keep_bio(self._seen[at], bio, fate)

    def _set_terms(self, terms: Rules | Bounds) -> None:
        for name, value in asdict(terms).items():
            self._terms[name] = value

    def _clear(self) -> None:
        self.held = self._held_parts = 0
        self._ends.clear()
        self._queues.clear()
        self._seen = None

    def _number(self, queue: Any) -> int:
        for number, known in enumerate(self._queues):
            if known is queue:
                return number
        self._queues.append(queue)
        return len(self._queues) - 1

    def _make_room(self, bios: int) -> None:
        needed = max(self.held, self._held_parts) + bios
        if needed > self._half:
            rows, parts = self._rows[: self.held], self._parts[: self._held_parts]
            self._half = 2 * needed
            self._rows, self._parts = (
                np.zeros(2 * self._half + 1, _ROW),
                np.zeros((2 * self._half, 3), np.int64),
            )
            self._rows[: self.held], self._parts[: self._held_parts] = rows, parts
            self._told = np.zeros((self._half, 3), np.int64)

    def _batches(
        self,
        rows: NDArray[Any],
        flush_ends: list[int],
        parts: NDArray[np.int64],
        seen: list[Request] | None,
    ) -> list[Batch]:
        """The batches of *rows*, in the order in which the era issues them.

        *flush_ends*: the place in *rows* where each flush ends; *seen*: the same requests as objects.
        """
        order = self._order(rows, flush_ends)
        if len(self._queues) > 1:
            rows["part"] = np.arange(len(rows))
        if order is not None:
            rows = rows[order]
        if seen is not None:
            seen = seen if order is None else [seen[at] for at in order.tolist()]
            for request, row in zip(seen, rows, strict=True):
                take_over(request, row)
        if len(self._queues) == 1:
            return [Batch(self._queues[0], rows, self._by_end(parts), seen)]
        batches = []
        for number in dict.fromkeys(rows["queue"].tolist()):
            own = rows["queue"] == number
            mine = parts[np.isin(parts[:, _PART_ROW], rows["part"][own])]
            theirs = seen and [request for request, is_own in zip(seen, own, strict=True) if is_own]
            batches.append(Batch(self._queues[number], rows[own], self._by_end(mine), theirs))
        return batches

    def _order(self, rows: NDArray[Any], flush_ends: list[int]) -> NDArray[np.int64] | None:
        """The places of *rows* in the order of issue; None: as they are."""
        if len(self._queues) == 1 and self._spec.order == "fifo":
            return None
        first, orders = 0, []
        for end in flush_ends:
            flushed = rows[first:end]
            order = issue_order(self._spec, flushed["start_sector"].tolist(), flushed["queue"].tolist())
            orders.append(np.arange(first, end) if order is None else first + np.array(order))
            first = end
        return np.concatenate(orders)

    def _by_end(self, parts: NDArray[np.int64]) -> list[tuple[EndIo, int]]:
        """For whom these *parts* are, and how many pages."""
        if len(self._ends) == 1:
            return [(self._ends[0], int(parts[:, _PART_PAGES].sum()))]
        pages = np.bincount(parts[:, _PART_END], parts[:, _PART_PAGES], len(self._ends))
        return [(end, int(count)) for end, count in zip(self._ends, pages.tolist(), strict=True) if count]


def _copy(rows: NDArray[Any]) -> NDArray[Any]:
    """A copy of *rows*, whole: NumPy would copy them field by field, in fifteen times the time."""
    return rows.view(_ROW_BYTES).copy().view(_ROW)


def _end_bios(request: Request, _: int) -> None:
    """*request*, which was plugged as an object, is done: call the end_io of its bios."""
    for bio in request.bios:
        if bio.end_io is not None:
            bio.end_io(bio.context)


@compiled
def _move_out(rows: Any, parts: NDArray[np.int64], step: Any) -> None:
    """What is held is issued: it goes behind what this step has issued before, in the second half."""
    first, first_part = step.half + step.out, step.half + step.out_parts
    for row in range(step.held):
        rows[first + row] = rows[row]
    for row in range(step.held_parts):
        parts[first_part + row, _PART_ROW] = step.out + parts[row, _PART_ROW]
        parts[first_part + row, _PART_END] = parts[row, _PART_END]
        parts[first_part + row, _PART_PAGES] = parts[row, _PART_PAGES]
    step.out += step.held
    step.out_parts += step.held_parts
    step.held = step.held_parts = 0


@compiled
def _submit_all(
    rows: Any, parts: NDArray[np.int64], told: NDArray[np.int64], bios: NDArray[np.int64],
    terms: NDArray[Any], steps: NDArray[Any],
) -> None:  # fmt: skip
    """Do a step: submit *bios* in order, until as many requests were made as it allows."""
    rules = bounds = terms[0]
    step, bio = steps[0], rows[len(rows) - 1]
    bio.queue, bio.op, bio.merges, bio.nomerge, bio.discard = step.queue, _OP_CODE, 0, False, False
    bio.meta = False
    for i in range(len(bios)):
        pages = bios[i, 1]
        bio.start_sector = bios[i, 0] * PAGE_SECTORS
        bio.end_sector = bio.start_sector + pages * PAGE_SECTORS
        bio.segments = (pages + step.segment_pages - 1) // step.segment_pages
        fate, at = walk(rows, step.held, bio, rules, bounds)
        if fate == IS_NEW and step.made == step.allowance:
            break
        told[i, _FATE] = fate
        told[i, _AT] = at
        step.done += 1
        if fate != IS_NEW:
            part = rows[at].part
            if parts[part, _PART_END] == step.end:
                parts[part, _PART_PAGES] += pages
                continue
        else:
            step.made += 1
            if is_full(rows, step.held, step.queue, rules, bounds):
                _move_out(rows, parts, step)
                told[step.flushes, _FLUSH_END] = step.out
                step.flushes += 1
                told[i, _FATE] |= FLUSHED
            at = step.held
            rows[at] = bio
            step.held += 1
        part = step.held_parts
        rows[at].part = part
        parts[part, _PART_ROW], parts[part, _PART_END], parts[part, _PART_PAGES] = at, step.end, pages
        step.held_parts += 1
