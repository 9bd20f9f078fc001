"""The commands of `wbsim`, one module each; `options` has the options that several of them share.

Each module has `HELP`, `add_options` and `execute`, which `cli` uses.  `execute` prints the result on stdout
and returns the exit status.  It raises `BadInput` for wrong input, and `cli` prints the problems and ends
with status 2.
"""
