"""The extents of a random file, and the dirty pages that XFS's page walk finds at a time."""

from __future__ import annotations

import pytest

from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import build

TEXT = """
title = "random writes to a slow drive; half of the file may be dirty"
[scenario]
machine.like = "desk-vm"
machine.disks.loop0.device = {{ kind = "ssd", link = "50 MB/s", command_time = "10 us", latency = "50 us", cache = "1 MiB", units = 256, flash_page = "16 KiB", program_time = "100 us", read_time = "100 us", protected = false }}
kernel.like = "6.18"
kernel.dirty = {{ dirty_bytes = "12 MiB", dirty_background_bytes = "6 MiB" }}
kernel.filesystems.xfs.pagevec = {pagevec}
filesystem = {{ like = "desk-xfs" }}
workload.command = "fio --ioengine=psync --rw=randwrite --bs=4k --filesize=24m --create_on_open=1 --fallocate=none --name=a --directory=/mnt"
"""  # noqa: E501


def extents(pagevec: int, seed: int) -> int:
    """Return the extents of a file of 24 MiB."""
    (case,) = parse(TEXT.format(pagevec=pagevec), "x.toml").cases
    machine = build(case.scenario, seed)
    machine.run()
    (mount,) = machine.mounts.values()
    return sum(file.extent_count() for file in mount.filesystem.layouts())


@pytest.mark.parametrize("seed", [1, 2])
def test_pagevec_keeps_gaps_from_being_filled(seed: int) -> None:
    """A page that becomes dirty behind the flusher's look starts an allocation in a gap of other pages.

    Linux 6.18 has 31 pages in a pagevec, and ends with 623 and 1 857 extents (docs/measurements.md W).
    """
    assert extents(31, seed) > 2 * extents(1, seed)
