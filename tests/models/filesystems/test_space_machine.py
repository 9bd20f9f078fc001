"""Free space, and the pages of a file, step by step, against a set of blocks and a dictionary of pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from wbsim.models.filesystems.blocks import Free
from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS, Geometry
from wbsim.models.filesystems.ext4.mballoc import Mballoc
from wbsim.models.filesystems.xfs.free_extents import take_aligned, take_exactly
from wbsim.models.filesystems.xfs.free_space import FreeSpace
from wbsim.models.page_cache.file_pages import FilePages
from wbsim.models.page_cache.pages import (
    DELAYED,
    DIRTY,
    HELD,
    HOLE,
    MAPPED,
    hold_blocks,
    map_blocks,
    run_alike,
    take_run,
    use_held,
)

BLOCKS = 3_000
HEAD = 10


def runs_of(blocks: Iterable[int]) -> list[Free]:
    """Return *blocks* as runs that lie apart."""
    runs: list[Free] = []
    for block in sorted(blocks):
        if runs and runs[-1].first + runs[-1].size == block:
            runs[-1] = Free(runs[-1].first, runs[-1].size + 1)
        else:
            runs.append(Free(block, 1))
    return runs


class Blocks(RuleBasedStateMachine):
    """Free blocks, runs that were given, and parts of these that come back: for both filesystems."""

    of: Any
    free: set[int]
    used: list[tuple[int, int]]

    def _take(self, block: int, length: int) -> None:
        taken = set(range(block, block + length))
        assert taken <= self.free, "a used block was allocated"
        self.free -= taken
        self.used.append((block, length))

    @precondition(lambda self: getattr(self, "used", None))
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        """Give back a part of a run that was given."""
        block, length = self.used.pop(data.draw(st.integers(0, len(self.used) - 1)))
        first = data.draw(st.integers(0, length - 1))
        if first:
            self.used.append((block, first))
        self.of.give_back(block + first, length - first)
        self.free |= set(range(block + first, block + length))


class Group(Blocks):
    """The free space of an XFS group, in hundreds of pieces, so that the rows of its tables are split."""

    @initialize(holes=st.integers(0, 400))
    def begin(self, holes: int) -> None:
        self.of = FreeSpace(HEAD, BLOCKS - HEAD)
        self.free = set(range(HEAD, BLOCKS))
        self.used: list[tuple[int, int]] = []
        for hole in range(holes):
            assert take_exactly(self.of.with_room(1), 0, HEAD + 7 * hole + 3, 1)
            self._take(HEAD + 7 * hole + 3, 1)

    @rule(goal=st.integers(0, BLOCKS), length=st.integers(1, 60))
    def near(self, goal: int, length: int) -> None:
        """Take *length* blocks if they lie together anywhere; at the goal, if these blocks are free."""
        runs = runs_of(self.free)
        longest = max((run.size for run in runs), default=0)
        at_goal = set(range(goal, goal + length)) <= self.free
        found = self.of.take_near(goal, length)
        if not longest:
            assert found is None
            return
        assert found is not None
        assert found[1] == min(length, longest)
        assert found[0] == goal or not at_goal
        in_run = next(run for run in runs if run.first <= found[0] < run.first + run.size)
        assert found[0] in (in_run.first, goal)
        self._take(*found)

    @rule(goal=st.integers(0, BLOCKS), length=st.integers(1, 60), unit=st.sampled_from([4, 16]))
    def aligned(self, goal: int, length: int, unit: int) -> None:
        """Take blocks at a multiple of the unit, if a free run has room for this."""
        runs = runs_of(self.free)
        longest = max((run.size for run in runs), default=0)
        block, got = take_aligned(self.of.with_room(1), 0, goal, length, unit)
        assert got == min(length, longest)
        if got:
            assert block % unit == 0 or longest < got + unit - 1
            self._take(block, got)

    @rule(block=st.integers(0, BLOCKS), length=st.integers(1, 9))
    def exactly(self, block: int, length: int) -> None:
        """Take exactly these blocks, or none."""
        wanted = set(range(block, block + length))
        assert take_exactly(self.of.with_room(1), 0, block, length) == (wanted <= self.free)
        if wanted <= self.free:
            self._take(block, length)

    @invariant()
    def free_is_what_was_not_taken(self) -> None:
        if hasattr(self, "of"):
            runs = runs_of(self.free)
            assert self.of.extents() == runs
            assert self.of.blocks == len(self.free)
            assert self.of.longest() == max((run.size for run in runs), default=0)
            self.of.check()


class Groups(Blocks):
    """An ext4 of six groups with about 766 free blocks each, which are searched group by group.

    The last group ends earlier: it has 500 free blocks.
    """

    @initialize()
    def begin(self) -> None:
        blocks = 6 * GROUP_BLOCKS - 263
        self.geometry = Geometry(blocks=blocks, flex_groups=3, descriptor_blocks=2, journal_blocks=100)
        self.of = Mballoc(self.geometry, by_order=False)
        self.free: set[int] = set()
        for number in range(6):
            head = self.geometry.head_blocks(number)
            cut = 32_000 + number
            assert self.of.take_exactly(number * GROUP_BLOCKS + head, cut - head)
            behind = min(blocks, (number + 1) * GROUP_BLOCKS)
            self.free |= set(range(number * GROUP_BLOCKS + cut, behind))
        self.used: list[tuple[int, int]] = []

    @rule(group=st.integers(0, 5), length=st.sampled_from([1, 2, 3, 8, 63, 64, 256, 300, 512, 1_024]))
    def find(self, group: int, length: int) -> None:
        """Take *length* blocks if they lie together in a group, and otherwise the longest run.

        A power of two lies at a multiple of itself.
        """
        runs = [run for number in range(6) for run in runs_of(self._in(number))]
        longest = max((run.size for run in runs), default=0)
        block, got = self.of.find(group, length)
        assert got == min(length, longest)
        if got:
            power = length >= 2 and length & (length - 1) == 0
            fits = any(-run.first % length + length <= run.size for run in self._local(power, length))
            assert not (power and fits) or block % length == 0
            self._take(block, got)

    def _in(self, number: int) -> set[int]:
        return {block for block in self.free if block // GROUP_BLOCKS == number}

    def _local(self, power: bool, length: int) -> list[Free]:
        """Return the runs, in blocks of their groups, of all groups that files may use."""
        if not power:
            return []
        return [
            Free(run.first % GROUP_BLOCKS, run.size)
            for number in range(6)
            if not self.geometry.keeps_off_data(number)
            for run in runs_of(self._in(number))
        ]

    @rule(block=st.integers(0, 6 * GROUP_BLOCKS), length=st.integers(1, 40))
    def exactly(self, block: int, length: int) -> None:
        """Take exactly these blocks, or none; never blocks of two groups."""
        wanted = set(range(block, block + length))
        fits = wanted <= self.free and block // GROUP_BLOCKS == (block + length - 1) // GROUP_BLOCKS
        assert self.of.take_exactly(block, length) == fits
        if fits:
            self._take(block, length)

    @rule(group=st.integers(0, 5), at=st.integers(32_000, GROUP_BLOCKS - 1), length=st.integers(1, 300))
    def exactly_there(self, group: int, at: int, length: int) -> None:
        self.exactly(group * GROUP_BLOCKS + at, length)

    @invariant()
    def free_is_what_was_not_taken(self) -> None:
        if hasattr(self, "of"):
            by_group = [run for number in range(6) for run in runs_of(self._in(number))]
            assert list(self.of.extents()) == by_group
            for flex in range(2):
                mine = range(3 * flex, 3 * flex + 3)
                assert self.of.free_blocks(flex) == sum(len(self._in(number)) for number in mine)
            self.of.check()


PAGES = 40


class File(RuleBasedStateMachine):
    """A file of forty pages: its dirty, mapped and held pages, and the extents that they form."""

    @initialize(base=st.sampled_from([0, 5_000]))
    def begin(self, base: int) -> None:
        self.of = FilePages(PAGES, base)
        self.states = [HOLE] * PAGES
        self.blocks: dict[int, int] = {}
        self.size = 0
        self.next_block = base + 100

    def _runs(self, wanted: int) -> list[tuple[int, int]]:
        """Return the runs of pages in exactly the state *wanted*: first page and length."""
        return [(run.first, run.size) for run in runs_of(i for i, s in enumerate(self.states) if s == wanted)]

    @rule(page=st.integers(0, PAGES - 1))
    def write(self, page: int) -> None:
        self.states[page] |= DELAYED
        self.of.pages.states[page] |= DELAYED
        self.size = max(self.size, page + 1)
        self.of.pages.size[0] = self.size

    @rule(data=st.data(), gap=st.integers(0, 2))
    def place(self, data: st.DataObject, gap: int) -> None:
        """Give blocks to a delayed run, next to the last blocks or apart from them."""
        runs = self._runs(DELAYED)
        if runs:
            page, count = data.draw(st.sampled_from(runs))
            count = data.draw(st.integers(1, count))
            self.next_block += gap
            map_blocks(self.of.pages, page, self.of.reach(self.next_block, count), count)
            for i in range(count):
                self.states[page + i] = DIRTY
                self.blocks[page + i] = self.next_block + i
            self.next_block += count

    @rule(data=st.data(), gap=st.integers(0, 2))
    def hold(self, data: st.DataObject, gap: int) -> None:
        """Hold blocks for a hole or for delayed pages."""
        runs = self._runs(DELAYED) + self._runs(HOLE)
        if runs:
            page, count = data.draw(st.sampled_from(runs))
            self.next_block += gap
            hold_blocks(self.of.pages, page, self.of.reach(self.next_block, count), count)
            for i in range(count):
                self.states[page + i] |= HELD
                self.blocks[page + i] = self.next_block + i
            self.next_block += count

    @rule(data=st.data())
    def use(self, data: st.DataObject) -> None:
        """Give delayed pages the blocks that are held for them."""
        held = [i for i, state in enumerate(self.states) if state == DELAYED | HELD]
        if held:
            page = data.draw(st.sampled_from(held))
            run = run_alike(self.of.pages, page, PAGES)
            alike = 1
            while (
                page + alike < PAGES
                and self.states[page + alike] == DELAYED | HELD
                and self.blocks[page + alike] == self.blocks[page] + alike
            ):
                alike += 1
            assert run == alike
            use_held(self.of.pages, page, run)
            for i in range(page, page + run):
                self.states[i] = DIRTY

    @rule(data=st.data())
    def write_out(self, data: st.DataObject) -> None:
        runs = self._runs(DIRTY)
        if runs:
            page, count = data.draw(st.sampled_from(runs))
            assert take_run(self.of.pages.states, self.of.pages.blocks, page, count) == count
            self.states[page : page + count] = [MAPPED] * count

    @rule()
    def give_up_held(self) -> None:
        given = self.of.give_up_held()
        held = [i for i, state in enumerate(self.states) if state & HELD]
        assert sorted(b for first, count in given for b in range(first, first + count)) == sorted(
            self.blocks[i] for i in held
        )
        for i in held:
            self.states[i] &= ~HELD

    def extents(self, size: int) -> list[tuple[int, int, int]]:
        """Return runs of mapped pages and of blocks: page, block, pages; a run ends before page *size*."""
        found: list[tuple[int, int, int]] = []
        for page, state in enumerate(self.states):
            if not state & MAPPED:
                continue
            block = self.blocks[page]
            if found and page != size:
                first, at, count = found[-1]
                if first + count == page and at + count == block:
                    found[-1] = (first, at, count + 1)
                    continue
            found.append((page, block, 1))
        return found

    @invariant()
    def the_extents_rebuild_the_file(self) -> None:
        if hasattr(self, "of"):
            assert self.of.pages.states.tolist() == self.states
            assert [tuple(extent) for extent in self.of.extents()] == self.extents(self.size)
            assert self.of.extent_count() == len(self.extents(self.size))
            assert self.of.dirty == sum(state & DELAYED for state in self.states)


Group.TestCase.settings = settings(max_examples=20, stateful_step_count=30)
Groups.TestCase.settings = settings(max_examples=15, stateful_step_count=25)
File.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestGroup: Any = Group.TestCase
TestGroups: Any = Groups.TestCase
TestFile: Any = File.TestCase
