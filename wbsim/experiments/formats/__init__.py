"""Results as text: tables of wbsim, and the formats of common tools.

`report` has the tables of figures.  `layout` prints like xfs_bmap and filefrag, `timeline` like vmstat and
iostat, and `locks` like lock_stat and perf.
"""
