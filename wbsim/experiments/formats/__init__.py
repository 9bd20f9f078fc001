"""Results as text: our own tables, and the formats of common tools.

`report` has the tables of figures.  `layout` prints as xfs_bmap and filefrag do, `timeline` as vmstat and
iostat, and `locks` as lock_stat and perf.
"""
