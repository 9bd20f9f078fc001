"""Two filesystems on one disk, one behind the other."""

from __future__ import annotations

from typing import Any

import pytest

from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import build
from wbsim.models.tracepoints import Signals

TEXT = """\
title = "two filesystems on one disk"
[scenario]
machine.like = "p13-vm"
machine.memory.memory = "64 MiB"
machine.memory.kernel_reserve = "0 B"
kernel.like = "6.18"
sync_after = true
mounts.one = {{ at = "/one", like = "{like}" }}
mounts.two = {{ at = "/two", like = "{like}" }}
programs.fs_mark.command = "fs_mark -S0 -k -n {files} -s {size} -L 1 -d /two"
"""


@pytest.mark.parametrize("like", ["p13-xfs", "loop-ext4"])
@pytest.mark.parametrize(("files", "size"), [(1, 64 << 20), (300, 4_096)])
def test_second_filesystem_writes_only_behind_the_first(like: str, files: int, size: int) -> None:
    """The filesystem writes large and small files, a log, and metadata."""
    scenario = parse(TEXT.format(like=like, files=files, size=size), "x.toml").cases[0].scenario
    signals = Signals()
    starts: list[int] = []
    signals.block_bio_queue.observers.append(lambda _, bio, task: starts.append(bio.start_sector))
    machine = build(scenario, 1, signals=signals)
    machine.run()
    second = machine.mounts["two"]
    assert second.first_block * 8 <= min(starts), "the first partition has no writes"
    assert machine.cache.written_pages * 4_096 >= size * files


def test_metadata_of_the_second_filesystem_lies_behind_the_first() -> None:
    """xfsaild writes inode clusters and directory blocks in place every 20 ms."""
    text = TEXT.format(like="p13-xfs", files=2_000, size=4_096)
    text = text.replace(
        'like = "p13-xfs" }\nprograms', 'like = "p13-xfs", log.sync_interval = "20 ms" }\nprograms'
    )
    assert "sync_interval" in text
    signals, starts = Signals(), list[int]()
    signals.block_bio_queue.observers.append(
        lambda _, bio, task: starts.append(bio.start_sector) if bio.meta and bio.op == "W" else None
    )
    machine = build(parse(text, "x.toml").cases[0].scenario, 1, signals=signals)
    machine.run()
    assert len(starts) > 10
    assert machine.mounts["two"].first_block * 8 <= min(starts)


def test_small_file_lies_in_pieces_if_no_run_suffices() -> None:
    """Every free run of the XFS has 10 blocks, and 50 files have 16 pages.

    Each file lies in two or more runs, and no block has two pages.
    """
    text = TEXT.format(like="p13-xfs", files=50, size=65_536)
    machine = build(parse(text, "x.toml").cases[0].scenario, 1)
    filesystem: Any = machine.mounts["two"].filesystem
    for group in filesystem.placement.groups:
        group.free.take_near(0, group.free.blocks)
        for run in range(100):
            group.free.give_back(100_000 + 11 * run, 10)
    filesystem.space.unclaimed = filesystem.placement.free_blocks - filesystem.space.reserve
    machine.run()
    files = filesystem.layouts()
    assert [file.size for file in files] == [16] * 50
    assert all(count >= 2 for count in filesystem.extents_per_file())
    blocks = [extent.block + i for file in files for extent in file.extents() for i in range(extent.pages)]
    assert len(blocks) == len(set(blocks)) == 50 * 16
    assert machine.cache.dirty_and_writeback == 0
