"""XFS.

Read `xfs` first: the parts of a mounted XFS.  `names` makes directories and inodes.  `placement` writes file
pages and takes the locks, and `layout` has the rules for the place of pages.  Allocation groups are in
`groups`, their free extents in `free_space` and `free_extents`.  `metadata` defines what a transaction logs.
`log` decides when a checkpoint is pushed and where it is written.  Mount options and costs are in `spec`.
"""

from wbsim.models.factories import FilesystemFactory
from wbsim.models.filesystems.xfs.spec import XfsSpec
from wbsim.models.filesystems.xfs.xfs import xfs

SPEC = XfsSpec
COMPONENT: FilesystemFactory = xfs
