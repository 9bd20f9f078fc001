"""Filesystems with delayed allocation: where pages lie on disk, and the locks and logs for that.

Read `delalloc` first: a filesystem and its files.  `delalloc_parts` lists what `xfs` and `ext4` supply for
it.  `writepages` walks over the dirty pages of a large file, and `completions` does the work after the end of
I/O.  `costs` has the times of allocations.  Left out: reads, truncation, quota, and stripes of ext4.
"""
