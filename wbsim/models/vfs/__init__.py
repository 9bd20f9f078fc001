"""Between system calls and filesystems: superblocks, inodes, write(2), sync(2)."""
