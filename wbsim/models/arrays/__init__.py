"""Arrays with a structure, for code that Numba compiles.

`compiled` compiles a function, and `sorted_table` is a table of keys that such functions search and change.
"""
