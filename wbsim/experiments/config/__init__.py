"""Configurations: from a TOML text to the scenarios of its variants and sweep points.

Begin with `experiment`.  The text becomes a tree, whose tables know the place of each entry (`toml_tree`,
`tree`).  A variant, a point of `sweeps` and the command line change the tree.  Then `scenarios` expands
names, ``like`` and counts, with `likes`, `disks`, `filesystems` and `programs`.  `Scenario` checks the
result.

`problems` collects all errors and reports them together, each with its place and its remedy.  The package
`running` runs the cases.

`keys` lists all keys for the reference and for `schema`, the JSON Schema for editors.  It takes the sentences
from `spec_docs`, the ranges from `values`, and the keys that no spec has from `grammar`.
"""
