"""ext4.

Read `ext4` first: what a mounted ext4 is made of.  `names` and `inodes` make directories and inodes.
`placement` writes file pages and takes the locks.  `layout` and `new_blocks` have the rules how many blocks
are taken for which pages, and `mballoc` finds them.  `geometry` has the places of mkfs.  `metadata` says what
a transaction logs, and `journal` when it commits.  Mount options and costs are in `spec`.
"""

from wbsim.models.factories import FilesystemFactory
from wbsim.models.filesystems.ext4.ext4 import ext4
from wbsim.models.filesystems.ext4.spec import Ext4Spec

SPEC = Ext4Spec
COMPONENT: FilesystemFactory = ext4
