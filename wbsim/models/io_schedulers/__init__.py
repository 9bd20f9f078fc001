"""I/O schedulers: the order in which waiting requests go to the driver.

Each file with a ``SPEC`` and a ``COMPONENT`` is a scheduler (`models.kinds`), and `spec` says what the two
must have.  `lanes` keeps requests by sector, for a scheduler that sorts.  `releases` has the schedulers of
each release.  The elevator (`models.block.elevator`) holds the requests and merges them.
"""
