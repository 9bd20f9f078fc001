"""What a configuration says: a TOML text to the scenarios of its variants and of the points of its sweep.

Text becomes a tree whose tables know where their entries are written (`toml_tree`, `tree`).  A variant, a
point and the command line change that tree.  Then names, ``like`` and counts are expanded (`scenarios`, with
`likes`, `disks`, `filesystems`, `programs`), and `Scenario` checks the result.  All problems are collected
(`problems`) and reported together, each with its place and its remedy.  Begin with `experiment`.

Running is not here: see `running` and `sweeps`.
"""
