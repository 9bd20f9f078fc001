"""Named values, each number with its source: kernels, devices, machines, filesystems."""
