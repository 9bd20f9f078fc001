"""Filesystems with delayed allocation: where pages lie on disk, and which locks and logs that takes.

Read `delalloc` first: a filesystem and its files.  `delalloc_parts` lists what `xfs` and `ext4` supply for
it.  `writepages` walks over the dirty pages of a large file, and `completions` runs what follows the end of
I/O.  `costs` has the times of allocations.  Left out: reads, truncation, quota, and stripes of ext4.
"""
