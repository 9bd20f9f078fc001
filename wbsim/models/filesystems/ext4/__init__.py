"""ext4."""

from wbsim.models.factories import FilesystemFactory
from wbsim.models.filesystems.ext4.ext4 import ext4
from wbsim.models.filesystems.ext4.spec import Ext4Spec

SPEC = Ext4Spec
COMPONENT: FilesystemFactory = ext4
