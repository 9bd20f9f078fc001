"""Dumps of a machine: copies of files of /proc and /sys, and the output of ``sysctl -a``.

A dump is made by hand, by sosreport or by hwloc-gather-topology.  So the copies may lie several levels below
the given folder, and files may be missing.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

from wbsim.experiments.config.problems import bad, list_names
from wbsim.sim.text_files import text_of

_LEVELS: Final = 5
"""The number of folder levels that are searched for a dump, from the given folder down."""
_MOST_FOLDERS: Final = 10_000
"""The search ends at a level with more folders."""
_IDENTIFYING: Final = ("proc/cpuinfo", "proc/meminfo", "sys/devices/system/cpu", "sys/devices/system/node")
"""Files and folders that identify a dump; each dump has at least one."""
_PARTITION: Final = re.compile(r"^\s*[0-9]+\s+[0-9]+\s+([0-9]{1,15})\s+(\S{1,100})$", re.MULTILINE)

_WANTED: Final = re.compile(
    r"(?:.*/)?(?:proc/(?:cpuinfo|meminfo|version|partitions|sys/(?:kernel/osrelease|vm/dirty_[a-z_]+))"
    r"|sys/(?:class/)?block/[^/]+|sys/(?:.*/)?(?:size|queue|queue/[^/]+|device|queue_depth|node[0-9]+"
    r"|node[0-9]+/(?:meminfo|cpulist)|cpu/online)|[^/]*sysctl[^/]*)"
)


def is_wanted(name: str) -> bool:
    """Return whether a `Dump` reads the file *name* of an archive, or a file below it, at any depth.

    ``wbsim describe-machine`` extracts only these files from a tarball.

    >>> is_wanted("host/proc/meminfo"), is_wanted("host/proc/stat")
    (True, False)
    """
    return _WANTED.fullmatch(name) is not None


class Dump:
    """The files of one machine, by their names below ``/``, such as ``proc/meminfo``.

    ``root`` is the folder that has proc and sys.

    Raises:
        BadInput: no folder at *path* or below has proc and sys, or several folders have.
    """

    def __init__(self, path: Path) -> None:
        self.root = _folder_of(path)

    def has(self, name: str) -> bool:
        """Return whether the dump has the file or folder *name*."""
        return (self.root / name).exists()

    def text_of(self, name: str, refuses: str | None = None) -> str:
        """Return the text of the file *name*, or "" if there is no such file or it is blank.

        *refuses*: the text to return if read(2) fails with EINVAL, as queue_wb_lat_show does without wbt.
        Zeros and blanks at both ends are removed, because a tarball of a live /sys pads each file with zeros.

        Raises:
            BadInput: the file cannot be read, or is not text.
        """
        path = self.root / name
        try:
            return text_of(path).strip("\0 \t\n")
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:
            from_read = error.filename is None  # errors of stat(2) and open(2) name the file
            if from_read and error.errno == errno.EINVAL and refuses is not None:
                return refuses
            message = f"cannot be read ({error.strerror}); make it readable, or give a copy of /proc and /sys"
            raise bad(str(path), message) from None
        except UnicodeDecodeError:
            raise bad(str(path), "is not a text; give / or a copy of a machine's /proc and /sys") from None

    def whole(self, name: str) -> int | None:
        """Return the number in the file *name*, or None if there is no such file or it is blank.

        Raises:
            BadInput: as `text_of` raises it; or as `number` raises it.
        """
        text = self.text_of(name)
        return self.number(name, text) if text else None

    def number(self, name: str, text: str) -> int:
        """Return the number in *text*, the text of the file *name*, which an error names.

        Raises:
            BadInput: the text is not a whole number of at most 15 digits.
        """
        if not re.fullmatch("[0-9]{1,15}", text):
            raise bad(str(self.root / name), f"is {text[:60]!r}; a whole number was expected")
        return int(text)

    def one_of(self, name: str, *choices: str) -> str:
        """Return the text of the file *name*, one of *choices*; "" if there is no such file or it is blank.

        Raises:
            BadInput: as `text_of` raises it; or the text is not one of *choices*.
        """
        text = self.text_of(name)
        if text and text not in choices:
            raise bad(str(self.root / name), f"is {text[:60]!r}; one of {', '.join(choices)} was expected")
        return text

    def setting(self, name: str) -> int | None:
        """Return the value of the sysctl *name*, such as ``vm.dirty_ratio``, in the kernel's unit.

        The value is that of /proc/sys, or else of the output of ``sysctl -a``; None if both lack *name*.

        Raises:
            BadInput: as `text_of` raises it; or the value is not a whole number.
        """
        file = f"proc/sys/{name.replace('.', '/')}"
        text = self.text_of(file)
        if not text and name in self._sysctls:
            file, text = self._sysctls[name]
        return self.number(file, text) if text else None

    @cached_property
    def release(self) -> str:
        """The kernel's release, such as "6.1.0-13-amd64", or "" if no file has it.

        Raises:
            BadInput: as `text_of` raises it.
        """
        words = self.text_of("proc/sys/kernel/osrelease").split()
        if not words:
            words = self._sysctls.get("kernel.osrelease", ("", ""))[1].split()
        if not words:
            words = self.text_of("proc/version").removeprefix("Linux version ").split()
        return words[0] if words else ""

    @cached_property
    def _sysctls(self) -> dict[str, tuple[str, str]]:
        """Return (file, value) by the name of a sysctl; the file has output of ``sysctl -a``."""
        files = [*self.root.glob("*sysctl*"), *self.root.glob("sos_commands/*/sysctl*")]
        settings: dict[str, tuple[str, str]] = {}
        for path in sorted(path for path in files if path.is_file()):
            name = str(path.relative_to(self.root))
            for line in self.text_of(name).splitlines():
                setting, equals, value = line.partition("=")
                if equals:
                    settings.setdefault(setting.strip(), (name, value.strip()))
        return settings

    def partitions(self) -> Iterator[tuple[str, int]]:
        """Yield the name and the size (bytes) of each line of /proc/partitions, with disks and partitions.

        Nothing is yielded without that file.

        Raises:
            BadInput: as `text_of` raises it.
        """
        for kib, name in _PARTITION.findall(self.text_of("proc/partitions")):
            yield name, int(kib) << 10


def _folder_of(path: Path) -> Path:
    """Return the folder at *path* or below that has a machine's files.

    Raises:
        BadInput: no folder has them, or several folders have.
    """
    layer = [path]
    for _ in range(_LEVELS):
        matches = [folder for folder in layer if _is_dump(folder)]
        if len(matches) > 1:
            names = list_names([str(folder) for folder in matches])
            raise bad(str(path), f"has several machines; give one of them: {names}")
        if matches:
            return matches[0]
        if len(layer) > _MOST_FOLDERS:
            break
        layer = sorted(child for folder in layer for child in _folders_in(folder))
    raise bad(str(path), "lacks the processors and the memory; give / or a copy of /proc and /sys")


def _is_dump(folder: Path) -> bool:
    """Return whether *folder* has one of the files that identify a dump."""
    try:
        return any((folder / name).exists() for name in _IDENTIFYING)
    except OSError:
        return False


def _folders_in(folder: Path) -> list[Path]:
    """Return the folders in *folder*, without links; an empty list if *folder* cannot be read."""
    try:
        return [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    except OSError:
        return []
