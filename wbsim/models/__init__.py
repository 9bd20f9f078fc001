"""The Linux writeback path and the machine that it runs on.

Read `interfaces` first: what passes between the parts, in the order of a page's life.  Then follow a page:
`workloads` -> `vfs` -> `page_cache` and `throttling` -> `flushers` and `writeback` -> `filesystems` ->
`block` -> `devices`.  `scheduler` shares the processors.  `scenario` describes a run, `catalogue` has named
values for it, and `machine` builds and runs it from `parts`.  Left out: reads of file data, reclaim of
anything but inodes, memory cgroups, and filesystems other than XFS and ext4.
"""

import wbsim.sim  # noqa: F401  which chooses the build of the models, before any of them is imported
