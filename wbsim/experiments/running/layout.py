"""The places of a run's files on the disk after a sync(2), as rows and as the kernel's tools print them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.problems import bad
from wbsim.experiments.formats.layout import filefrag, xfs_bmap
from wbsim.models.interfaces import Filesystem
from wbsim.models.page_cache.file_pages import FileExtent
from wbsim.sim.units import PAGE_BYTES


def laid_out(case: Case, mount: str | None, seed: int, place: str) -> tuple[str, Filesystem]:
    """Simulate *case*, and return the name of *mount* and its filesystem after a sync(2).

    *mount* may be None if there is only one.  *seed*: of the random numbers.  *place* is named in the error
    about files of one extent.

    Raises:
        BadInput: there is no such mount, or there are several and *mount* is None.  Or the filesystem keeps
            no file page by page, or the run cannot end.
        LawBroken: the run broke a law of the model.
    """
    from wbsim.experiments.running.simulate import simulate

    mounts = case.scenario.mounts
    name = mount if mount is not None else next(iter(mounts))
    if name not in mounts or (mount is None and len(mounts) > 1):
        message = "is missing" if mount is None else f"is {mount!r}"
        raise bad("--mount", f"{message}; use one of {', '.join(mounts)}")
    flushed = case.scenario.model_copy(update={"sync_after": True})
    filesystem = simulate(replace(case, scenario=flushed), seed).mounts[name].filesystem
    if not filesystem.layouts():
        message = f"mount {name} has only files of one extent, of which the model keeps just the number"
        raise bad(place, f"{message}; add a program that writes a large file, such as dd")
    return name, filesystem


def extents_of(filesystem: Filesystem) -> list[dict[str, int]]:
    """Return a dict for each extent of each file that *filesystem* keeps page by page.

    ``file`` is the number of the file, from 0.  ``file_offset_bytes``, ``disk_offset_bytes`` and
    ``length_bytes`` are the places and the size of the extent (bytes).  ``group`` is the number of its
    allocation or block group.
    """
    return [
        {
            "file": number, "file_offset_bytes": page * PAGE_BYTES, "disk_offset_bytes": block * PAGE_BYTES,
            "length_bytes": pages * PAGE_BYTES, "group": block // filesystem.group_blocks,
        }
        for number, file in enumerate(filesystem.layouts())
        for page, block, pages in file.extent_table().tolist()
    ]  # fmt: skip


def layout_texts(filesystem: Filesystem, tool: str) -> Iterator[str]:
    """Yield a text for each file that *filesystem* keeps page by page, as *tool* prints it.

    *tool*: "filefrag" (``-v``), or else "xfs_bmap" (``-vp``).
    """
    for number, file in enumerate(filesystem.layouts()):
        name, extents = f"file{number}", [FileExtent(*row) for row in file.extent_table().tolist()]
        if tool == "filefrag":
            yield filefrag(name, extents, file.size * PAGE_BYTES)
        else:
            yield xfs_bmap(name, extents, filesystem.group_blocks)
