"""Configurations: a TOML text to the scenarios of its variants and of the points of its sweep.

Text becomes a tree whose tables know where their entries are written (`toml_tree`, `tree`).  A variant, a
point of `sweeps` and the command line change that tree.  Then names, ``like`` and counts are expanded:
`scenarios`, with `likes`, `disks`, `filesystems` and `programs`.  `Scenario` checks the result.  Begin with
`experiment`.

`problems` has the messages of all that is wrong; they are reported together, each with its place and its
remedy.  `schema` lists the keys for editors and the reference.  Running is not here: see `running`.
"""
