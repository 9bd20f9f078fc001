"""Machine files: a user's machine, described from what its kernel says, and measured.

Read `describe` first.  `dump` reads copies of /proc and /sys, `measure` times system calls, and `costs` takes
the times of the flusher from a capture.
"""
