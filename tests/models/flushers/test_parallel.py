"""The number of contexts of a device, and the context that an inode belongs to."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.harness import FIO, loop_config, only
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import Machine, build
from wbsim.sim.engine import GiveUp


def machine(flusher: str, filesystem: str = "loop-xfs") -> Machine:
    """Return a machine with two processors; its XFS has four allocation groups."""
    text = loop_config(
        f"{FIO} --rw=randwrite --nrfiles=2 --filesize=1m --name=a --directory=/a --name=b --directory=/b",
        dirty_mib=8, filesystem=filesystem, more=f"kernel.flusher = {flusher}",
    )  # fmt: skip
    return build(parse(text, "x.toml").cases[0].scenario, 1)


@pytest.mark.parametrize(
    ("flusher", "filesystem", "contexts"),
    [
        ('{ kind = "parallel", by = "allocation_group" }', "loop-xfs", 4),
        ('{ kind = "parallel", by = "allocation_group" }', "loop-ext4", 1),
        ('{ kind = "parallel", by = "allocation_group", contexts = 3 }', "loop-ext4", 3),
        ('{ kind = "parallel", by = "hash" }', "loop-xfs", 2),
        ('{ kind = "parallel", by = "processor" }', "loop-ext4", 2),
        ('{ kind = "per_bdi" }', "loop-xfs", 1),
    ],
)
def test_device_has_a_context_for_each_group_or_processor(
    flusher: str, filesystem: str, contexts: int
) -> None:
    """bdi->nr_wb_ctx after the mount is the number of groups or processors, unless the user gives it."""
    of = machine(flusher, filesystem)
    assert len(of.cache.wbs) == len(of.flushers.threads) == contexts


@pytest.mark.parametrize(
    ("by", "groups", "hashed", "processors"),
    [
        ("allocation_group", [0, 1, 2, 3, 0], [2, 2, 2], [1, 1]),
        ("hash", [2, 2, 2, 2, 2], [2, 1, 3], [2, 2]),
        ("processor", [1, 1, 1, 1, 1], [1, 1, 1], [0, 3]),
    ],
)
def test_context_of_an_inode_follows_group_hash_or_processor(
    by: str, groups: list[int], hashed: list[int], processors: list[int]
) -> None:
    """The context of an inode follows its allocation group, its number or its processor; there are four.

    * ``groups``: the contexts of groups 0 to 4, for inode 1 on processor 1.
    * ``hashed``: the contexts of inodes 1 to 3 of group 2, on processor 1.  The first multiples of the golden
      ratio have the upper halves 0x61c88646, 0xc3910c8d and 0x255992d3.
    * ``processors``: the contexts of inode 1 of group 1, on processors 0 and 3.
    """
    of = machine(f'{{ kind = "parallel", by = "{by}", contexts = 4 }}')
    bdi = only(of.mounts).bdi
    assert [bdi.wbs.index(bdi.wb_of(group, 1, 1)) for group in range(5)] == groups
    assert [bdi.wbs.index(bdi.wb_of(2, number, 1)) for number in (1, 2, 3)] == hashed
    assert [bdi.wbs.index(bdi.wb_of(1, 1, cpu)) for cpu in (0, 3)] == processors


def test_start_background_wakes_all_contexts_with_dirty_inodes() -> None:
    """start_background wakes its context and every other context of the device that has dirty inodes."""
    of = machine('{ kind = "parallel", by = "allocation_group" }')
    with pytest.raises(GiveUp):
        of.env.run(10_000)
    assert not any(of.flushers.in_progress(wb) for wb in of.cache.wbs)
    wbs = of.cache.wbs
    wbs[0].add(SimpleNamespace(dirty_pages=1, i_sync=None), 0)
    of.flushers.start_background(wbs[2])
    assert [of.flushers.in_progress(wb) for wb in wbs] == [number in (0, 2) for number in range(len(wbs))]
