"""The picture of the places of a run's files on the disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from wbsim.experiments.config.problems import bad
from wbsim.experiments.formats.table import figure_text
from wbsim.experiments.pictures.axes import PICTURE_WIDTH, head
from wbsim.models.interfaces import Filesystem
from wbsim.sim.units import MIB, PAGE_BYTES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS: Final = 1_500
_NO_FILE: Final = -1


def owners(
    tables: Sequence[NDArray[np.int64]], group_blocks: int, columns: int
) -> tuple[list[int], NDArray[np.int64]]:
    """Return the numbers of the used groups, rising, and an array of files with a row for each of them.

    Each row has *columns* entries: the index in *tables* of the file at the middle of the column; -1: no
    file.  The columns reach up to the highest block that is used in any group.

    *tables*: the extents of each file (rows of page, block, pages), for one file or more.  *group_blocks*:
    the size of a group (blocks).

    Raises:
        BadInput: no file has an extent.
    """
    extents = np.concatenate(tables)
    if not len(extents):
        raise bad("layout", "no file has a block yet; set sync_after = true")
    first, last = extents[:, 1] // group_blocks, (extents[:, 1] + extents[:, 2] - 1) // group_blocks
    changes = np.zeros(int(last.max()) + 2, np.int64)
    np.add.at(changes, first, 1)
    np.add.at(changes, last + 1, -1)
    groups = np.flatnonzero(np.cumsum(changes))
    width = used_blocks(extents, group_blocks)
    middles = (np.arange(columns) * width + width // 2) // columns
    picture = np.full((len(groups), columns), _NO_FILE, np.int64)
    for number, table in enumerate(tables):
        if not len(table):
            continue
        by_block = table[np.argsort(table[:, 1])]
        for row, group in enumerate(groups.tolist()):
            blocks = middles + group * group_blocks
            index = np.searchsorted(by_block[:, 1], blocks, side="right") - 1
            inside = (index >= 0) & (blocks < by_block[index, 1] + by_block[index, 2])
            picture[row, inside] = number
    return groups.tolist(), picture


def used_blocks(extents: NDArray[np.int64], group_blocks: int) -> int:
    """Return the highest end of *extents* (rows of page, block, pages) within their groups, in blocks.

    There is at least one extent.  *group_blocks*: the size of a group (blocks).  An extent of ext4 may
    continue in the next group; such a group is used to its end.
    """
    return min(int((extents[:, 1] % group_blocks + extents[:, 2]).max()), group_blocks)


def disk_picture(title: str, filesystem: Filesystem) -> Figure:
    """Return a picture of the blocks of *filesystem*, with groups as rows and files as colours.

    Only files that *filesystem* keeps page by page are shown, and there is at least one.  *title* begins the
    heading, which also has the mean extents a file and the mean size of an extent (MiB).

    Raises:
        BadInput: no file has an extent.
    """
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    tables = [file.extent_table() for file in filesystem.layouts()]
    groups, picture = owners(tables, filesystem.group_blocks, COLUMNS)
    extents = np.concatenate(tables)
    used_mib = used_blocks(extents, filesystem.group_blocks) * PAGE_BYTES / MIB
    rows = len(groups)
    figure = Figure(figsize=(PICTURE_WIDTH, 1.3 + min(0.36 * rows, 6)), layout="constrained")
    axes = figure.subplots()
    palette = colormaps["tab20"].resampled(20)
    colours: list[Any] = [palette(i % 20) for i in range(len(tables))]
    axes.imshow(
        picture, aspect="auto", interpolation="nearest", extent=(0, used_mib, rows - 0.5, -0.5),
        cmap=ListedColormap(["white", *colours]), vmin=_NO_FILE, vmax=len(tables) - 1,
    )  # fmt: skip
    for row in range(1, rows):
        axes.axhline(row - 0.5, color="white", linewidth=3)
    names = [f"{filesystem.group_label} {group}" if rows <= 24 else "" for group in groups]
    axes.set_yticks(range(rows), names)
    axes.set_xlabel("MiB from the start of the group; white: no file", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    counts = filesystem.extents_per_file()
    head(
        figure,
        f"{title}: {len(tables)} files, one colour each; on average {figure_text(sum(counts) / len(counts))}"
        " extents a file,"
        f" {sum(int(t[:, 2].sum()) for t in tables) * PAGE_BYTES / MIB / sum(counts):.3g} MiB an extent",
    )
    axes.tick_params(labelsize=8)
    return figure
