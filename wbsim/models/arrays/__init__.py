"""Arrays with a structure, for code that Numba compiles.

`compiled` compiles a function.  `sorted_table` is a table of keys that compiled functions search and change.
"""
