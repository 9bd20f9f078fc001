"""XFS.

Read `xfs` first: what a mounted XFS is made of.  `names` makes directories and inodes.  `placement` writes
file pages and takes the locks; `layout` has the rules where the pages lie.  Allocation groups are in
`groups`, their free extents in `free_space` and `free_extents`.  `metadata` says what a transaction logs, and
`log` when a checkpoint is pushed and where it is written.  Mount options and costs are in `spec`.
"""

from wbsim.models.factories import FilesystemFactory
from wbsim.models.filesystems.xfs.spec import XfsSpec
from wbsim.models.filesystems.xfs.xfs import xfs

SPEC = XfsSpec
COMPONENT: FilesystemFactory = xfs
