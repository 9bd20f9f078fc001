"""XFS."""

from wbsim.models.factories import FilesystemFactory
from wbsim.models.filesystems.xfs.spec import XfsSpec
from wbsim.models.filesystems.xfs.xfs import xfs

SPEC = XfsSpec
COMPONENT: FilesystemFactory = xfs
