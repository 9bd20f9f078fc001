"""Writeback of dirty inodes: the lists of a context, the work that is asked for, and the loop that does it.

Read `wb` first, which has the lists and the work items, then `loop`, which writes inodes.  `context_thread`
is the thread of one context, and `pdflush` the pool of kernels before 2.6.32.  Which of them a kernel has is
decided in `flushers`.  Left out: cgroups.
"""
