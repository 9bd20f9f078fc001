"""Reasons for the length of a run, and changes that would affect it.

Read `bottlenecks` first, then `explain`.  `sensitivity` varies assumed numbers.  `advise` varies the number
of writeback contexts.
"""
