"""ext4."""

from models.filesystems.ext4.ext4 import Ext4
from models.filesystems.ext4.spec import Ext4Spec

SPEC, COMPONENT = Ext4Spec, Ext4
