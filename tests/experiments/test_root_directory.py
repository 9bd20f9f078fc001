"""The place of a file in the mount's own directory, and in a directory below it.

The expected blocks of Linux 6.18 were measured on both kinds of disk (docs/measurements.md E).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wbsim.experiments.config.experiment import load
from wbsim.experiments.running.simulate import simulate

FIRST = 34_816
"""The first block of group 1 that is free and a multiple of 2 048: 32 768, with a superblock, and 2 048."""
BEHIND_TABLES = 9_303
"""The first block of group 0 that is free, behind the tables of its flex group."""
GROUPS_OF_FLEX = 16


def first_block(
    folder: Path, path: str, kernel: str = "6.12", disk: str = "sata-disk", seed: int = 1, mount: str = "",
    filesystem: str = "ext4", size: str = "16M",
) -> int:  # fmt: skip
    """Return the block where the file at *path* begins on a fresh filesystem of 400 GB."""
    config = folder / "place.toml"
    where = mount or '"/"'
    config.write_text(
        'title = "place"\n'
        "[scenario]\n"
        'machine.like = "desk-vm"\n'
        f'machine.disks = {{ it = {{ like = "{disk}" }} }}\n'
        f'mounts.data = {{ like = "{filesystem}", disk = "it", at = {where}, size = "400 GB" }}\n'
        f'kernel.like = "{kernel}"\n'
        f'workload.command = "dd if=/dev/zero of={path} bs={size} count=1"\n'
    )
    case = load(config, []).only_case(None)
    flushed = replace(case, scenario=case.scenario.model_copy(update={"sync_after": True}))
    filesystem_of_run: Any = simulate(flushed, seed).mounts["data"].filesystem
    (file,) = filesystem_of_run.layouts()
    return int(file.extent_table().tolist()[0][1])


@pytest.mark.parametrize(
    ("disk", "kernel", "expected"),
    [
        *(("sata-disk", kernel, FIRST) for kernel in ("3.11", "5.12", "5.13", "6.1", "6.12", "6.18")),
        *(("sata-ssd", kernel, FIRST) for kernel in ("3.11", "5.12")),
        *(("sata-ssd", kernel, BEHIND_TABLES) for kernel in ("5.13", "6.1", "6.12", "6.18")),
    ],
)
def test_large_file_of_the_root_begins_in_a_low_group(
    disk: str, kernel: str, expected: int, tmp_path: Path
) -> None:
    """Ten seeds give the same block.  From 5.13 on, a search on flash finds no group that was read."""
    blocks = {first_block(tmp_path, "/data/f", kernel, disk, seed) for seed in range(1, 11)}
    assert blocks == {expected}


@pytest.mark.parametrize("kernel", ["3.11", "5.12", "5.13", "6.1", "6.12", "6.18"])
def test_large_file_of_a_subdirectory_ignores_it_on_disks(kernel: str, tmp_path: Path) -> None:
    """A rotating disk: the first groups from the last group used, 0 after the mount, are searched in line."""
    blocks = {first_block(tmp_path, "/data/sub/f", kernel, seed=seed) for seed in range(1, 11)}
    assert blocks == {FIRST}


@pytest.mark.parametrize("kernel", ["5.13", "6.1", "6.12", "6.18"])
def test_large_file_of_a_subdirectory_follows_it_on_flash(kernel: str, tmp_path: Path) -> None:
    """No group is searched in line: the file lies where bitmaps are read, in the directory's flex group.

    Ten names have ten hashes.  The file begins in the second group of a flex group.
    """
    blocks = [first_block(tmp_path, "/data/sub/f", kernel, "sata-ssd", seed) for seed in range(1, 11)]
    assert len(set(blocks)) > 5
    assert {block // 32_768 % GROUPS_OF_FLEX for block in blocks} == {1}


@pytest.mark.parametrize(
    ("path", "mount", "in_root"),
    [
        ("/data/f", "", True), ("/data/./f", "", True), ("f", "", True), ("/data/sub/f", "", False),
        ("/data/f", '"/data"', True), ("/data/sub/f", '"/data"', False), ("/srv/db/f", '"/srv/db"', True),
        ("/srv/db/a/f", '"/srv/db"', False), ("/srv/db/f", "", False),
    ],
)  # fmt: skip
def test_root_is_the_mount_point(path: str, mount: str, in_root: bool, tmp_path: Path) -> None:
    """A single mount without a path is mounted at the first part of the program's path."""
    block = first_block(tmp_path, path, disk="sata-ssd", mount=mount)
    assert (block == BEHIND_TABLES) == in_root


@pytest.mark.parametrize("path", ["/data/f", "/data/sub/f"])
def test_first_file_of_xfs_lies_in_group_0(path: str, tmp_path: Path) -> None:
    """The root lies in group 0, and the first subdirectory takes the first turn of the rotation."""
    assert first_block(tmp_path, path, filesystem="xfs") < 400 * 10**9 // 4_096 // 4
