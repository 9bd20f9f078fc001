"""Captures of a real kernel's block layer: recorded, read, and replayed through the model's block layer.

Read `replay` first.  `reader` opens a capture, and `ftrace` and `blkparse` read its two formats into the
steps of `events`.  `merge_decisions` derives what the kernel decided, and `verdict` counts where the model
agrees.  `what_if` gives the same bios to another kernel.
"""
