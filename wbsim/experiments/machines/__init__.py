"""Machine files: a user's machine, described from /proc and /sys, and measured.

Read `describe` first.  `dump` reads copies of /proc and /sys.  `measure` times system calls.  `costs` takes
the times of the flusher from a capture.
"""
