"""The virtual filesystem, between system calls and filesystems.

Read `superblock` first, then `write` and `sync`, which are the system calls.  `inodes` has the lists, locks
and reclaim of cached inodes; report V13 is about the contention of these locks.  Left out: dentries other
than their costs, path lookup, permissions, and reads of file data.
"""
