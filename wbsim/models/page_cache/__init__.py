"""The page cache: dirty pages, their limits, and each context's share of them.

`accounting` counts pages and has the thresholds, `estimates` has bandwidths and shares of contexts.
`file_pages` and `pages` are the pages of one file, as an object and as arrays.  Left out: reclaim of
clean pages.
"""
