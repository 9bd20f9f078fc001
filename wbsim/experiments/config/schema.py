"""All keys of a configuration, made from the specs: as rows of a reference, and as a JSON Schema."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from wbsim.models.filesystems.spec import FilesystemSpec
from wbsim.models.kinds import kinds
from wbsim.models.scenario import DriveSpec, KernelSpec, MachineSpec
from wbsim.models.workloads.spec import WorkloadSpec
from wbsim.sim.param import Named, Spec, unit_of

_FOLDERS: Final = ("devices", "filesystems", "flushers", "throttling", "workloads")
_UNITS: Final = {
    "ns": 'a time, such as "5 ms"',
    "B": 'a size, such as "4 KiB"',
    "B/s": 'a rate, such as "500 MB/s"',
}


class Key(NamedTuple):
    """One key of a table: its path, and the values that it takes, in words."""

    path: str
    takes: str


def keys_of(spec: type[Spec], prefix: str = "", within: Sequence[type[Spec]] = ()) -> Iterator[Key]:
    """Yield every key of *spec* and of the specs in it; a part with several kinds has the keys of each kind.

    *within* has the specs around *spec*.  A spec inside itself, such as a device in an array, is one key.
    """
    for name, field in spec.model_fields.items():
        if name == "kind":
            continue
        path = f"{prefix}{name}"
        below = list(_specs_in(field.annotation))
        if not below:
            yield Key(path, _takes(field.annotation, unit_of(field)))
        many = _is_named(field.annotation) or get_origin(field.annotation) is tuple
        for one in below:
            inner = f"{path}.NAME." if many else f"{path}."
            if one in within:
                yield Key(path, "a list of devices, or one device and its count" if many else "a device")
            else:
                yield from _of_kind(one, inner, within)


def _of_kind(spec: type[Spec], prefix: str, within: Sequence[type[Spec]] = ()) -> Iterator[Key]:
    """Yield the keys of *spec*, or of each of its kinds."""
    specs = _kinds_of(spec)
    if not specs:
        yield from keys_of(spec, prefix, within)
    for kind, one in specs.items():
        yield Key(f"{prefix}kind", f'"{kind}", with:')
        yield from keys_of(one, prefix, (*within, spec)) if one is not spec else ()


def _kinds_of(spec: type[Spec]) -> Mapping[str, type[Spec]]:
    """Return the specs of the kinds of *spec* by name; empty if *spec* is not the base of several kinds."""
    if "kind" not in spec.model_fields or get_origin(spec.model_fields["kind"].annotation) is Literal:
        return {}
    return {
        name: kind.spec
        for folder in _FOLDERS
        for name, kind in kinds(folder).items()
        if issubclass(kind.spec, spec)
    }


def _specs_in(annotation: object) -> Iterator[type[Spec]]:
    if get_origin(annotation) is Annotated:
        yield from _specs_in(get_args(annotation)[0])
    elif isinstance(annotation, type) and issubclass(annotation, Spec):
        yield annotation
    else:
        for part in get_args(annotation):
            yield from _specs_in(part)


def _is_named(annotation: object) -> bool:
    if get_origin(annotation) is Annotated:
        return _is_named(get_args(annotation)[0])
    return get_origin(annotation) is Named


def _takes(annotation: Any, unit: str) -> str:
    """Return, in words, the values that a key takes."""
    if unit in _UNITS:
        return _UNITS[unit]
    if get_origin(annotation) is Annotated:
        return _takes(get_args(annotation)[0], unit)
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(f'"{choice}"' for choice in get_args(annotation))
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [_takes(part, unit) for part in get_args(annotation) if part is not type(None)]
        return " or ".join(dict.fromkeys(parts))
    if get_origin(annotation) is tuple:
        return "a list"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    return names.get(annotation, "a value")


PARTS: Final[dict[str, type[Spec]]] = {
    "machine": MachineSpec, "machine.disks.NAME": DriveSpec, "kernel": KernelSpec,
    "filesystem": FilesystemSpec, "workload": WorkloadSpec,
}  # fmt: skip
"""The tables of a scenario; ``mounts.NAME`` has the keys of a filesystem, ``programs.NAME`` of a workload."""
_OF_CONFIGURATIONS: Final = {
    "machine.disks.NAME": (
        Key("machine.disks.NAME.like", "a drive of `wbsim list disks`, or a file with a disk"),
        Key("machine.disks.NAME.count", "a whole number: so many disks NAME0, NAME1 ..."),
        Key("machine.disks.NAME.device.like", "a drive; also in `members` and `behind`"),
        Key("machine.disks.NAME.device.speed", "a number: times as fast"),
    )
}
"""The keys of a configuration that the specs lack, by table."""


def reference() -> str:
    """Return all keys, as Markdown."""
    lines = []
    for name, spec in PARTS.items():
        lines += [f"## {name}", "", "| key | takes |", "|---|---|"]
        keys = [*_OF_CONFIGURATIONS.get(name, ()), *_of_kind(spec, f"{name}.")]
        rows = [f"| `{key.path}` | {key.takes} |" for key in keys]
        lines += [*dict.fromkeys(rows), ""]
    return "\n".join(lines)


def json_schema() -> dict[str, object]:
    """Return the schema of a configuration (JSON Schema 2020-12), for editors."""
    tables: dict[str, Any] = {name: _table(spec) for name, spec in PARTS.items() if "." not in name}
    tables["machine"]["properties"]["disks"] = _by_name(_table(DriveSpec))
    tables |= {
        "mounts": _by_name(tables["filesystem"]),
        "programs": {"anyOf": [_by_name(tables["workload"]), {"type": "array"}]},
        "give_up": {"type": "string"},
        "sync_after": {"type": "boolean"},
    }
    lists = {"type": "object", "additionalProperties": {"type": "array"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An experiment of wbsim",
        "type": "object",
        "required": ["title", "scenario"],
        "additionalProperties": False,
        "properties": {
            "title": {"type": "string"},
            "quick": {"type": "array", "items": {"type": "string"}},
            "replications": {"type": "integer", "minimum": 1},
            "scenario": {"type": "object", "properties": tables, "additionalProperties": False},
            "variants": _by_name({"type": "object"}),
            "sweep": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string"}, "points": {"type": "array"}, "grid": lists, "zip": lists,
                    "lhs": {"type": "object"},
                },
            },
        },
    }  # fmt: skip


def _by_name(table: object) -> dict[str, object]:
    return {"type": "object", "additionalProperties": table}


def _table(spec: type[Spec]) -> dict[str, object]:
    """Return the schema of a table: ``like``, and the keys of *spec* or of all its kinds."""
    specs = list(_kinds_of(spec).values()) or [spec]
    fields = {name: field for one in specs for name, field in one.model_fields.items()}
    properties: dict[str, object] = {"like": {"type": "string"}}
    for name, field in fields.items():
        properties[name] = {"description": _takes(field.annotation, unit_of(field))}
    return {"type": "object", "properties": properties}
