"""ext4."""

from wbsim.models.filesystems.ext4.ext4 import ext4
from wbsim.models.filesystems.ext4.spec import Ext4Spec

SPEC, COMPONENT = Ext4Spec, ext4
