"""The page cache: dirty pages, their limits, and the share of each writeback context.

`accounting` counts pages and has the thresholds.  `estimates` has the bandwidths and shares of contexts.
`file_pages` and `pages` are the pages of one file, as an object and as arrays.  Left out: reclaim of clean
pages.
"""
