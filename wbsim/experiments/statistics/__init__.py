"""Statistics of many runs.

`figures` has every figure of a run with its unit, and `intervals` the means and 95 % intervals of many runs.
`dataset` is the table with a row for each run.
"""
