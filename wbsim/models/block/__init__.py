"""The block layer, from submit_bio to the driver.

Read `merge` first, which decides which bio joins which request.  Then follow a bio: `thread` submits it,
`plug` holds it back, `elevator` merges it, and `queue` dispatches and completes it.  I/O schedulers
(`models.io_schedulers`) choose the order.  `request_pool` and `wbt` make submitters wait.  Left out: reads of
file data, several hardware queues as separate locks, and cgroups.
"""
