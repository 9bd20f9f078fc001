"""Arrays of disks (drivers/md): bios of an array become bios of its members.

`array` has what all levels share.  `striping` is RAID0, `mirror` is RAID1 and RAID10, and `parity` is RAID5
and RAID6 with their `stripe_cache`.  `geometry` says where a sector lies, `parity_reads` what a partial write
must read, and `bitmap` keeps the write-intent bitmap.
"""
