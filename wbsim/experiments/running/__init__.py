"""Running cases, and keeping their results.

Read `execute` first: it runs the cases that are missing in the `store`.  `simulate` runs one case, `outcome`
has its figures, and `workers` and `cluster` run many cases.  `config` and `sweeps` decide which cases a
command needs.
"""
