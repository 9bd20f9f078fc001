"""ext4.

Read `ext4` first: what a mounted ext4 is made of.  `names` and `inodes` make directories and inodes,
`placement` and `layout` say where file pages lie, and `mballoc` finds the blocks.  `metadata` and `journal`
have the transactions.
"""

from wbsim.models.factories import FilesystemFactory
from wbsim.models.filesystems.ext4.ext4 import ext4
from wbsim.models.filesystems.ext4.spec import Ext4Spec

SPEC = Ext4Spec
COMPONENT: FilesystemFactory = ext4
