"""XFS."""

from models.filesystems.xfs.spec import XfsSpec
from models.filesystems.xfs.xfs import Xfs

SPEC, COMPONENT = XfsSpec, Xfs
