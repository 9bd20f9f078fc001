"""XFS.

Read `xfs` first: what a mounted XFS is made of.  `names` makes directories and inodes, `placement` and
`layout` say where file pages lie, in the allocation groups of `groups`.  `metadata` and `log` have the
transactions.
"""

from wbsim.models.factories import FilesystemFactory
from wbsim.models.filesystems.xfs.spec import XfsSpec
from wbsim.models.filesystems.xfs.xfs import xfs

SPEC = XfsSpec
COMPONENT: FilesystemFactory = xfs
