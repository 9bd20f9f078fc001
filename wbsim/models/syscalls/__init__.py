"""System calls: what a program may ask of the kernel.

READ `process` FIRST: a `Process` makes the calls.  `timing` says when a call begins and ends, and `latency`
counts how long it took.  `write` has what each write(2) does, and `stream` makes many of them as few events.
`sync` has sync(2), syncfs(2) and fsync(2), and `family` fork(2) and wait(2).
Programs (`models.workloads`) are scripts of such calls.
"""
