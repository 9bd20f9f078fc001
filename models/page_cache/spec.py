"""What is configured of the page cache: memory, and the thresholds of dirty pages."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from wbsim.sim.param import BadValue, Bytes, BytesOrNone, Count, CountOrNone, Spec
from wbsim.sim.units import MIB, PAGE_BYTES


class MemorySpec(Spec):
    """Memory: its size, what the kernel keeps, and what a cached inode costs beside its pages.

    ``inode_slab_bytes``: inode, dentry, log item and its part of the inode cluster's buffer.
    """

    memory: Bytes
    kernel_reserve: BytesOrNone
    inode_slab_bytes: BytesOrNone

    @model_validator(mode="after")
    def _check(self) -> MemorySpec:
        if self.memory - self.kernel_reserve < MIB:
            raise BadValue("leaves less than 1 MiB beside kernel_reserve; give more", "memory")
        return self


class DirtyLimits(Spec):
    """vm.dirty_background_ratio and vm.dirty_ratio, in percent, or, for each, vm.*_bytes instead.

    A background threshold that is not below the limit is half of it, as in the kernel (global_dirty_limits).
    """

    dirty_background_ratio: Annotated[CountOrNone, Field(le=100)]
    dirty_ratio: Annotated[Count, Field(le=100)]
    dirty_background_bytes: Bytes | None = None
    dirty_bytes: Bytes | None = None

    @model_validator(mode="after")
    def _check(self) -> DirtyLimits:
        if self.dirty_bytes is not None and self.dirty_bytes < 2 * PAGE_BYTES:
            what = f"{self.dirty_bytes} B: the kernel takes two pages at least, {2 * PAGE_BYTES} B"
            raise BadValue(what, "dirty_bytes")
        return self
