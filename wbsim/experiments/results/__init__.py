"""The results of runs.

`outcome` is what one run leaves behind.  `figures` has every figure of a run with its unit.  `intervals` has
the means and 95 % intervals of many runs.  `dataset` has the table with a row for each run.
"""
