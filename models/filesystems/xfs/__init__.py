"""XFS."""

from models.filesystems.xfs.spec import XfsSpec
from models.filesystems.xfs.xfs import xfs

SPEC, COMPONENT = XfsSpec, xfs
