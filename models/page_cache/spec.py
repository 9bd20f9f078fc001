"""What is configured of the page cache: memory, and the thresholds of dirty pages."""

from __future__ import annotations

from pydantic import model_validator

from wbsim.sim.param import Bytes, BytesOrNone, Count, Spec
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
            raise ValueError("less than 1 MiB of memory is left beside kernel_reserve; give more memory")
        return self


class DirtyLimits(Spec):
    """vm.dirty_background_ratio and vm.dirty_ratio, in percent, or both in bytes instead."""

    dirty_background_ratio: Count
    dirty_ratio: Count
    dirty_background_bytes: Bytes | None = None
    dirty_bytes: Bytes | None = None

    @model_validator(mode="after")
    def _check(self) -> DirtyLimits:
        if (self.dirty_bytes is None) != (self.dirty_background_bytes is None):
            raise ValueError("give both dirty_background_bytes and dirty_bytes, or neither")
        if self.dirty_bytes is not None and self.dirty_background_bytes is not None:
            if not PAGE_BYTES <= self.dirty_background_bytes < self.dirty_bytes:
                raise ValueError("dirty_background_bytes has to be one page at least, and below dirty_bytes")
            return self
        if not self.dirty_background_ratio < self.dirty_ratio <= 100:
            raise ValueError(
                f"dirty_background_ratio {self.dirty_background_ratio} has to be below dirty_ratio"
                f" {self.dirty_ratio}, and that at most 100"
            )
        return self
