"""Which thread writes back which dirty inode."""
