"""The search of an allocation of XFS in both trees of free extents: when it is needed, and what it takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.harness import caller, only, run_for
from tests.models.page_cache.lettered import file
from wbsim.experiments.config.experiment import parse
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.filesystems.costs import MapCosts
from wbsim.models.filesystems.xfs.free_extents import LAST_BLOCK, needs_search
from wbsim.models.filesystems.xfs.free_space import FreeSpace, FreeTables
from wbsim.models.filesystems.xfs.layout import (
    FIRST,
    GROUP,
    LENGTH,
    NEAR,
    NOWHERE,
    SEARCHED,
    STRIPE,
    allocate,
    give_blocks,
    plan_extent,
    prealloc,
    write_all,
)
from wbsim.models.filesystems.xfs.spec import LogCosts, XfsFlusherCosts
from wbsim.models.interfaces import Thread
from wbsim.models.machine import build, scale
from wbsim.models.page_cache.file_pages import FilePages
from wbsim.models.page_cache.pages import DELAYED, dirty_page_from, take_run
from wbsim.sim.engine import Steps
from wbsim.sim.sync import HandOff

PAGES, GROUP_BLOCKS = 131_072, 524_288
RULES: Any = KERNELS["6.18"].filesystems["xfs"]


def spaces(large: int, small: int) -> tuple[FreeTables, FreeSpace]:
    """Return two groups; the second has *large* free extents of 3 blocks, and *small* ones of 1."""
    tables = FreeTables(2)
    first, second = FreeSpace(0, 0, tables, 0), FreeSpace(0, 0, tables, 1)
    for number in range(10):
        first.give_back(10 * number, 9)
    for number in range(large + small):
        second.give_back(10 * number, 3 if number < large else 1)
    return tables, second


@pytest.mark.parametrize("small", [0, 1_000])
@pytest.mark.parametrize(
    ("large", "length", "searches"),
    [
        (LAST_BLOCK, 3, False),
        (LAST_BLOCK + 1, 3, True),
        (LAST_BLOCK + 1, 2, True),
        (LAST_BLOCK + 1, 4, False),
        (0, 3, False),
    ],
)
def test_search_is_needed_if_the_last_block_has_not_all(
    large: int, small: int, length: int, searches: bool
) -> None:
    """Only free extents of at least *length* blocks count, and only those of the group."""
    tables, _ = spaces(large, small)
    assert needs_search(tables.spaces, 1, length) == searches
    assert not needs_search(tables.spaces, 0, 1)


@pytest.mark.parametrize(("near", "searches"), [(500, 1), (NOWHERE, 0)])
def test_allocation_by_size_searches_nothing(near: int, searches: int) -> None:
    """Without a target, the smallest sufficient extent is one lookup away (xfs_alloc_ag_vextent_size)."""
    _, space = spaces(LAST_BLOCK + 1, 0)
    of = file("dd")
    plan = np.array([0, 1, near, 0, 1, 0, -7])
    give_blocks(*of.pages, space.arrays_with_room(1), 0, plan)
    assert plan[SEARCHED] == searches
    assert not allocate(file("dd").pages, space.with_room(1), 1, 0, near, 0)  # one large extent less


def searched(parts: list[float]) -> list[float]:
    """Write these parts of a file at random, one after another; return the share of searches of each."""
    of, space = FilePages(PAGES, base=0), FreeSpace(8, GROUP_BLOCKS - 8)
    order = np.random.default_rng(1).permutation(PAGES - 1)
    rule = prealloc(RULES, None)
    plan = np.zeros(7, np.int64)
    plan[FIRST], plan[STRIPE] = 0, 1
    shares, at = list[float](), 0
    write_all(of.pages, np.array([PAGES - 1]), 1, rule, PAGES, 1 << 40)
    for part in parts:
        new = order[at : at + int(part * PAGES)]
        at += len(new)
        write_all(of.pages, new, 1, rule, PAGES, 1 << 40)
        page, allocations, found = 0, 0, 0
        while (page := int(dirty_page_from(of.pages.states, of.pages.size, page))) >= 0:
            if of.pages.states[page] == DELAYED:
                plan_extent(*of.pages, page, GROUP_BLOCKS, plan)
                assert plan[LENGTH]
                assert plan[GROUP] == 0
                assert plan[NEAR] >= 0
                give_blocks(*of.pages, space.arrays_with_room(1), page, plan)
                allocations += 1
                found += int(plan[SEARCHED])
            page += int(take_run(of.pages.states, of.pages.blocks, page, PAGES))
        shares.append(found / allocations)
    return shares


def test_random_parts_of_a_file_search_as_measured() -> None:
    """docs/measurements.md V: the share of allocations that do not end in the last block, on 6.18."""
    assert searched([1 / 8, 1 / 8, 1 / 4, 1 / 4]) == pytest.approx([0.92, 0.97, 0, 0], abs=0.03)
    assert searched([1 / 2]) == pytest.approx([0.94], abs=0.03)


def times_of(search_ns: int) -> list[int]:
    """Return the times of three allocations; before the second, the group gets `LAST_BLOCK` gaps of 5 blocks.

    The third one takes more than 5 blocks, because it is at the end of the file.
    """
    text = f"""\
title = "search"
[scenario]
machine.like = "loop-vm"
machine.processors.cv = 0
machine.processors.paths.filesystems.xfs.flusher.search_ns = "{search_ns} ns"
machine.disks.d.like = "loop"
kernel.like = "6.18"
mounts.m = {{ like = "loop-xfs", disk = "d", at = "/m", size = "4 GiB" }}
programs.s = {{ command = "sync", start = "10 ms" }}
"""
    machine = build(parse(text, "x.toml").cases[0].scenario, 1)
    env, mount = machine.env, only(machine.mounts)
    of: Any = mount.filesystem
    flusher = machine.thread("flusher")
    took: list[int] = []

    def maps(thread: Thread) -> Steps:
        directory = yield from of.names.mkdir(thread)
        inode = yield from of.names.create(caller(thread), directory)
        of.write(inode, np.array([0, 1_000, 2_000]), 1)
        free = of.placement.groups[inode.group.number].free
        for page in (0, 1_000, 2_000):
            began_ns = env.now
            yield from of.placement.map_extent(thread, inode, inode.file, page, 1)
            took.append(env.now - began_ns)
            yield 1_000_000
            if page == 0:
                for number in range(LAST_BLOCK):
                    free.take_near(50_000 + 10 * number, 5)

    env.start(flusher.task, maps(flusher))
    run_for(env, 5_000_000)
    return took


def test_search_takes_time_of_the_flusher() -> None:
    """Only the second allocation searches: more free extents have room for it than the last block holds."""
    without, longer = times_of(0), times_of(7_000)
    assert [after - before for before, after in zip(without, longer, strict=True)] == [0, 7_000, 0]


@pytest.mark.source
def test_search_is_a_part_of_the_transaction() -> None:
    """A factor of transactions scales it, and a random factor varies it with the allocation."""
    times = {"map_ns": 4_000, "page_ns": 1, "ioend_ns": 3_000, "rmap_ns": 0, "rmap_ioend_ns": 0}
    given: dict[str, Any] = {**times, "log": dict.fromkeys(LogCosts.model_fields, 0), "search_ns": 2_000}
    costs = scale(XfsFlusherCosts.model_validate(given), 1.0, 0.5)
    assert (costs.map_ns, costs.search_ns, costs.page_ns) == (2_000, 1_000, 1)
    factors: Any = SimpleNamespace(next=lambda: 3.0)
    assert MapCosts(costs, 4, factors, HandOff(100, 0)).varied_map_ns(0, 1_000) == (9_000, 0)
