"""A literal writeback of one file: each page, each bio, each request and each lock is an event.

It says what the model has to come to, to the nanosecond.  It has its own clock, tasks, locks, plug, queue and
device.  From the model it takes only rules of merging, pages, allocators and costs, which have no time.
"""
