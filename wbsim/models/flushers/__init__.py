"""Flushers: which threads write back which dirty inodes.

Each module is one design: `pdflush`, `per_bdi` and `parallel`.  All of them run the loop in `writeback`.
"""
