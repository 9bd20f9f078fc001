"""Configurations: from a TOML text to the scenarios of its variants and sweep points.

Begin with `experiment`.  The text becomes a tree, whose tables know the place of each entry (`toml_tree`,
`tree`).  A variant, a point of `sweeps` and the command line change the tree.  Then `scenarios` expands
names, ``like`` and counts, with `likes`, `disks`, `filesystems` and `programs`.  `Scenario` checks the
result.

`problems` collects all errors and reports them together, each with its place and its remedy.  `schema` lists
the keys for editors and the reference.  The package `running` runs the cases.
"""
