"""ext4.

Read `ext4` first: the parts of a mounted ext4.  `names` and `inodes` make directories and inodes.
`placement` writes file pages and takes the locks.  `layout` and `new_blocks` have the rules for the number of
blocks, and `mballoc` finds the blocks.  `geometry` has the places that mkfs chooses.  `metadata` defines what
a transaction logs, and `journal` decides when it commits.  Mount options and costs are in `spec`.
"""

from wbsim.models.factories import FilesystemFactory
from wbsim.models.filesystems.ext4.ext4 import ext4
from wbsim.models.filesystems.ext4.spec import Ext4Spec

SPEC = Ext4Spec
COMPONENT: FilesystemFactory = ext4
