"""The Linux writeback path and the machine that it runs on.

Read `interfaces` first: the objects and protocols between the folders, in the order in which a page passes
them.  Then follow a page: `workloads` -> `syscalls` -> `vfs` -> `page_cache` and `throttling` -> `flushers`
and `writeback` -> `filesystems` -> `block` -> `devices`.  `scheduler` shares the processors.

`scenario` describes a run, and `catalogue` has named values for it, such as the rules of each kernel.
`machine` builds and runs it.  `kinds` finds the component for each part of the scenario, and `factories` has
the types of these components.  `parts` makes their threads, locks and random numbers.

Left out: reads of file data, reclaim of anything but inodes, memory cgroups, and filesystems other than XFS
and ext4.
"""

import wbsim.sim  # noqa: F401  which chooses the build of the models, before any of them is imported
