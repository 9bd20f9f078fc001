"""The map of a disk: the file that owns each block."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.pictures.disk import disk_picture, owners, used_blocks
from wbsim.experiments.running.layout import layout_texts


def tables(*files: list[tuple[int, int, int]]) -> list[Any]:
    """Return the extents (page, block, pages) of each file."""
    return [np.array(extents, np.int64).reshape(-1, 3) for extents in files]


def test_column_shows_the_owner_of_its_middle_block() -> None:
    """A map has a row for each group of 100 blocks, with four columns.

    * The third group has no used block and is not shown.
    * The extent over a border belongs to both groups.
    * The columns of a map with at most 40 used blocks have their middles at 5, 15, 25 and 35.
    """
    found = tables([(0, 0, 10), (10, 96, 30)], [(0, 20, 20)], [], [(0, 310, 10)])
    groups, picture = owners(found, 100, 4)
    assert used_blocks(np.concatenate(found), 100) == 100
    assert groups == [0, 1, 3]
    assert owners(tables([(0, 0, 10)], [(0, 20, 20)], [(0, 310, 10)]), 100, 4)[1].tolist() == [
        [0, -1, 1, 1], [-1, 2, -1, -1],
    ]  # fmt: skip
    assert picture.tolist() == [[-1, 1, -1, -1], [0, -1, -1, -1], [3, -1, -1, -1]]  # middles 12, 37, 62, 87
    unsorted = tables([(10, 30, 10), (0, 10, 10)])
    assert owners(unsorted, 100, 4)[1].tolist() == [[-1, 0, -1, 0]]


def test_files_without_blocks_have_no_map() -> None:
    """The error states the remedy."""
    with pytest.raises(BadInput, match="no file has a block yet; set sync_after = true"):
        owners(tables([]), 100, 4)


def filesystem(*files: list[tuple[int, int, int]]) -> Any:
    """Return a filesystem with these *files*, in groups of 256 blocks (1 MiB)."""
    made = [
        SimpleNamespace(extent_table=lambda table=table: table, size=int(table[:, 2].sum()))
        for table in tables(*files)
    ]
    return SimpleNamespace(
        layouts=lambda: made, group_blocks=256, group_label="AG",
        extents_per_file=lambda: tuple(len(extents) for extents in files),
    )  # fmt: skip


def test_disk_picture_has_a_row_for_each_group() -> None:
    """Two files have 768 KiB in three extents.  The axis is in MiB."""
    figure = disk_picture("A run", filesystem([(0, 0, 64), (64, 300, 64)], [(0, 128, 64)]))
    (axes,) = figure.axes
    (image,) = axes.images
    assert [text.get_text() for text in axes.get_yticklabels()] == ["AG 0", "AG 1"]
    assert image.get_extent() == [0, 0.75, 1.5, -0.5]
    assert axes.get_xlabel() == "MiB from the start of the group; white: no file"
    assert figure.get_suptitle().replace("\n", " ") == (
        "A run: 2 files, one colour each; on average 1.5 extents a file, 0.25 MiB an extent"
    )
    data: Any = image.get_array()
    assert data.shape == (2, 1_500)
    assert (data[0] == 0).sum() == (data[0] == 1).sum() == (data[1] == 0).sum() == 500
    assert len(axes.lines) == 1
    assert image.get_clim() == (-1, 1)
    assert image.get_interpolation() == "nearest"
    assert axes.get_aspect() == "auto"
    assert image.get_cmap()(0)[:3] == (1, 1, 1), "free space is white"
    assert (axes.lines[0].get_color(), axes.lines[0].get_ydata()[0]) == ("white", 0.5)


def test_many_groups_have_no_labels() -> None:
    """The labels of more than 24 groups would overlap."""
    files = [[(0, 256 * group, 9)] for group in range(25)]
    labels = disk_picture("x", filesystem(*files)).axes[0].get_yticklabels()
    assert [text.get_text() for text in labels] == [""] * 25
    labels = disk_picture("x", filesystem(*files[:24])).axes[0].get_yticklabels()
    assert labels[23].get_text() == "AG 23"


def test_layout_texts_print_each_file_like_a_tool() -> None:
    """Files have numbers as names.  The text of xfs_bmap has groups, that of filefrag the size in bytes."""
    of = filesystem([(0, 300, 64)], [(0, 128, 1)])
    bmap, other = layout_texts(of, "xfs_bmap")
    assert bmap.splitlines()[0] == "file0:"
    assert "2400..2911" in bmap
    assert "(352..863)" in bmap
    assert other.splitlines()[0] == "file1:"
    frag = next(iter(layout_texts(of, "filefrag")))
    assert frag.splitlines()[0] == "File size of file0 is 262144 (64 blocks of 4096 bytes)"
