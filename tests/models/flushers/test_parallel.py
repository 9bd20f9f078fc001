"""How many contexts a device has, and which of them an inode belongs to."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.harness import FIO, loop_config, only
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import Machine, build
from wbsim.sim.engine import GiveUp


def machine(flusher: str, filesystem: str = "loop-xfs") -> Machine:
    """With two processors, and an XFS of four groups."""
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
def test_a_device_has_a_context_for_each_group_or_each_processor(
    flusher: str, filesystem: str, contexts: int
) -> None:
    """bdi->nr_wb_ctx after the mount, unless it is given."""
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
def test_the_context_of_an_inode(
    by: str, groups: list[int], hashed: list[int], processors: list[int]
) -> None:
    """Groups 0 to 4, then inodes 1 to 3 of group 2, then processors 0 and 3, with four contexts; else group
    1, inode 1, processor 1.  the golden ratio's first multiples have
    upper halves of 0x61c88646, 0xc3910c8d and 0x255992d3.
    """
    of = machine(f'{{ kind = "parallel", by = "{by}", contexts = 4 }}')
    bdi = only(of.mounts).bdi
    assert [bdi.wbs.index(bdi.wb_of(group, 1, 1)) for group in range(5)] == groups
    assert [bdi.wbs.index(bdi.wb_of(2, number, 1)) for number in (1, 2, 3)] == hashed
    assert [bdi.wbs.index(bdi.wb_of(1, 1, cpu)) for cpu in (0, 3)] == processors


def test_a_writer_tells_all_contexts_to_write_in_the_background() -> None:
    """Also those whose own writers have done nothing; but none that has nothing to write."""
    of = machine('{ kind = "parallel", by = "allocation_group" }')
    with pytest.raises(GiveUp):
        of.env.run(10_000)
    assert not any(of.flushers.in_progress(wb) for wb in of.cache.wbs)
    wbs = of.cache.wbs
    wbs[0].add(SimpleNamespace(dirty_pages=1, i_sync=None), 0)
    of.flushers.start_background(wbs[2])
    assert [of.flushers.in_progress(wb) for wb in wbs] == [number in (0, 2) for number in range(len(wbs))]
