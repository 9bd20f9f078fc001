"""The filesystems of the reports and of our own measurements, by name: each is a file in data/filesystems."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from wbsim.models.catalogue.data_files import names_in, part_in
from wbsim.models.catalogue.on_demand import OnDemand
from wbsim.models.filesystems.spec import FilesystemSpec
from wbsim.models.kinds import kinds

FOLDER: Final = "filesystems"


def _filesystem(name: str) -> FilesystemSpec:
    """Return the filesystem *name*; its kind decides the spec that checks it."""
    inputs = {key: entry for key, entry in part_in(FOLDER, name).items() if key != "purpose"}
    spec: type[FilesystemSpec] = kinds("filesystems")[inputs["kind"].value].spec
    return spec.model_validate(inputs)


FILESYSTEMS: Final[Mapping[str, FilesystemSpec]] = OnDemand(
    {name: partial(_filesystem, name) for name in names_in(FOLDER)}
)
"""The filesystems that a configuration can name."""
