"""A literal writeback of one file: each page, each bio, each request and each lock is an event.

The model must give the same results to the nanosecond.  The literal writeback has a clock, tasks, locks, a
plug, a queue and a device.  It merges bios, chooses blocks and keeps extents by itself.  From the model it
takes the costs, and the free space at the begin.
"""
