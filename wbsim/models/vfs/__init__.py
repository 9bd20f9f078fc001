"""The virtual filesystem, between system calls and filesystems.

Read `superblock` first, then `write` and `sync`, which are the calls.  `inodes` has the lists, locks and
reclaim of cached inodes, whose contention is the subject of report V13.  Left out: dentries, path lookup,
permissions, and reads.
"""
