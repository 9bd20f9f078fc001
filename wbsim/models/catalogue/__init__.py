"""The catalogue: named values for machines, drives, filesystems and kernels, each number with its source.

Machines, drives and filesystems are files in data/, in the grammar of a user's files (`data_files`).  What
depends on a release is computed: the rules of a kernel (`kernels`) and the queue of an interface (`queues`).
`mkfs` computes what the tools decide.
"""
