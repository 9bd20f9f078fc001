"""XFS."""

from wbsim.models.filesystems.xfs.spec import XfsSpec
from wbsim.models.filesystems.xfs.xfs import xfs

SPEC, COMPONENT = XfsSpec, xfs
