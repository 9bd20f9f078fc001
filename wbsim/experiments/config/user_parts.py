"""Parts of one's own: a machine, a disk, a filesystem or a kernel in a file, which ``like`` finds.

A file is a table as the configuration would have it, with a ``like`` of its own where it starts from
something::

    like = "p13-vm"
    processors.count = 16
    disks.nvme0n1 = { like = "pm9a3" }                # the disks of a file are all that its machine has
    processors.wake_time = { assumed = "5 us", low = "1 us", high = "50 us", why = "not measured here" }

``like`` names a path that ends in .toml, from the configuration's folder, or a name: NAME.toml in that
folder, in its machines/, disks/, filesystems/ or kernels/, or in the same folders of ~/.config/wbsim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from wbsim.experiments.config.key_places import Places
from wbsim.experiments.config.toml_document import NotToml, document_of
from wbsim.sim.param import ByHand, Given, Origin, Stated, specified
from wbsim.sim.text_files import text_of

HOME: Final = Path("~/.config/wbsim").expanduser()
_ORIGINS: Final = {"assumed": Origin.ASSUMED, "measured": Origin.MEASURED}
_BESIDE: Final = {"low", "high", "why"}


class NotThere(Exception):
    """No file of that name."""


class OwnPart(NamedTuple):
    """A file with a part of one's own: its table with every value's place, and these."""

    path: Path
    table: dict[str, Any]
    places: Places


def own_part(like: str, folder: str, directory: Path) -> OwnPart:
    """The part that *like* names; *folder* is where such parts lie.

    Raises:
        NotThere: there is none.
        ValueError: it cannot be read.
    """
    for path in _candidates(like, folder, directory):
        if _is_there(path):
            try:
                text = text_of(path)
                table = document_of(text)
            except NotToml as error:
                line = "" if error.line is None else f":{error.line}"
                raise ValueError(f"{path}{line} cannot be read: {error}") from None
            except (OSError, ValueError) as error:  # what is no text is a ValueError, too
                raise ValueError(f"{path} cannot be read: {error}") from None
            places = Places(str(path), text)
            return OwnPart(path, sourced(table, places), places)
    raise NotThere(like)


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def _candidates(like: str, folder: str, directory: Path) -> Iterator[Path]:
    if like.endswith(".toml"):
        yield directory / like
        return
    if "/" in like or like.startswith("."):
        return
    for base in (directory, directory / folder, HOME / folder):
        yield base / f"{like}.toml"


def sourced(table: Mapping[str, Any], places: Places, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """*table* with every value marked as given where it stands, or with the origin that it names."""
    result: dict[str, Any] = {}
    for key, value in table.items():
        at = (*path, key)
        if isinstance(value, Mapping):
            stated = _with_origin(value, places.of(at))
            result[key] = stated if stated is not None else sourced(value, places, at)
        elif isinstance(value, list):
            items = [(item, (*at, str(place))) for place, item in enumerate(value)]
            result[key] = [
                sourced(item, places, where) if isinstance(item, Mapping) else by_hand(item)
                for item, where in items
            ]
        else:
            result[key] = specified(by_hand(value), places.of(at))
    return result


def _with_origin(value: Mapping[str, Any], place: str) -> Given | None:
    """What ``{ assumed = ..., low = ..., high = ..., why = ... }`` gives; None of any other table."""
    name = next((key for key in value if key in _ORIGINS), None)
    if name is None or not set(value) <= {name, *_BESIDE}:
        return None
    why = f"{place}: {value.get('why', name)}"
    low, high = value.get("low", value[name]), value.get("high", value[name])
    return Stated(by_hand(value[name]), _ORIGINS[name], why, by_hand(low), by_hand(high))


def by_hand(value: Any) -> Any:
    """A bare number is one that a user wrote."""
    return ByHand(value) if isinstance(value, int) and not isinstance(value, bool) else value
