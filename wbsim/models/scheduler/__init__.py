"""The scheduler, which decides which task runs on which processor.

Read `cpu` first, which has all processors, then `runqueue`, the queue of one processor (CFS or EEVDF).  Left
out: groups, affinity to several processors, and the topology of caches.
"""
