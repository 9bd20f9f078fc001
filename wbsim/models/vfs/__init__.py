"""The virtual filesystem, between system calls and filesystems.

Read `superblock` first.  `inodes` has the lists, locks and reclaim of cached inodes; report V13 is about the
contention of these locks.  Left out: dentries of files that no program names, the time of path lookup,
permissions, and reads of file data.
"""
