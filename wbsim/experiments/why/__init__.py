"""Reasons: why a run took as long as it did, and what would change that.

Read `bottlenecks` first, then `explain`.  `sensitivity` varies assumed numbers, and `advise` the number of
writeback contexts.
"""
