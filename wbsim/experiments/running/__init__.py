"""Running cases, and keeping their results.

Read `execute` first: it runs those cases that are not in the `store` yet.  `simulate` runs one case,
`outcome` is what it measures, and `workers` and `cluster` run many.  Which cases there are is decided in
`config` and `sweeps`.
"""
