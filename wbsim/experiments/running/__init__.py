"""Running cases, and keeping their results.

Read `execute` first: it runs the cases that are missing in the `store`.  `simulate` runs one case, `reading`
reads its machine, and `workers` and `cluster` run many cases.  `config` and `sweeps` decide which cases a
command needs.
"""
