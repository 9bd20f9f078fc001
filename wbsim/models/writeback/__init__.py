"""Writeback of dirty inodes: the lists of a context, its work items, and the loop that does them.

Read `wb` first, which has the lists and the queue of work items, then `loop`, which writes inodes.
`context_thread` is the thread of one context, and `pdflush` the pool of kernels before 2.6.32.  `flushers`
decides which of these a kernel has.  Left out: cgroups.
"""
