"""The keys of a configuration as a JSON Schema, with which an editor completes keys and marks errors."""

from __future__ import annotations

from typing import Any, Final

from wbsim.experiments.config.grammar import DISK_KEYS, NAME, File
from wbsim.experiments.config.keys import Key, sections
from wbsim.experiments.config.scenarios import PARTS
from wbsim.sim.param import Origin

_SCENARIO: Final = "#/properties/scenario/properties"
_MACHINE: Final = f"{_SCENARIO}/machine/properties"


def json_schema() -> dict[str, object]:
    """Return the schema of a configuration (JSON Schema 2020-12): a description and a type of each key.

    ``wbsim schema`` prints it.
    """
    schema = _types()
    for section in sections():
        for key in section.keys:
            for path in _places(key.path):
                _describe(schema, path, key)
    scenario = schema["properties"]["scenario"]
    _close(scenario)
    machine = scenario["properties"]["machine"]["properties"]
    for part in DISK_KEYS:  # the only disk needs no name
        machine[part]["$ref"] = f"{_MACHINE}/disks/additionalProperties/properties/{part}"
    variant = schema["properties"]["variants"]["additionalProperties"]
    variant["properties"] |= {part: {"$ref": f"{_SCENARIO}/{part}"} for part in PARTS}
    variant["additionalProperties"] = False
    scenario["properties"]["programs"]["type"] = ["object", "array"]
    scenario["properties"]["programs"]["additionalProperties"]["type"] = ["object", "string"]
    return schema


def _close(schema: dict[str, Any]) -> None:
    """Let *schema* and the tables in it have no other keys than those that are described."""
    if "properties" in schema:
        schema["additionalProperties"] = False
    for inner in (*schema.get("properties", {}).values(), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            _close(inner)


def _types() -> dict[str, Any]:
    """Return the schema of the keys of the file, without descriptions."""
    texts = {"type": "array", "items": {"type": "string"}}
    lists = {"type": "object", "additionalProperties": {"type": "array"}}
    sweep = {"name": {"type": "string"}, "points": {"type": "array"}, "grid": {**lists}, "zip": {**lists}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"stated": _STATED},
        "title": "An experiment of wbsim",
        "type": "object",
        "required": ["title", "scenario"],
        "additionalProperties": False,
        "properties": {
            "title": {"type": "string"},
            "quick": {**texts},
            "replications": {"type": "integer", "minimum": 1},
            "scenario": {"type": "object", "properties": {}},
            "variants": {"type": "object"},
            "sweep": {"type": "object", "properties": sweep, "additionalProperties": False},
        },
    }


def _places(path: str) -> list[list[str]]:
    """Return the paths of the key *path* in a file.

    The keys of a filesystem are keys of ``mounts``, too; workloads and ``programs`` share all keys.
    """
    first, *rest = path.split(".")
    if first in File.model_fields:
        return [[first, *rest]]
    shared = {"filesystem": [["mounts", NAME, *rest]], "workload": [["programs", NAME, *rest]]}
    also = [["workload", *rest[1:]]] if first == "programs" else shared.get(first, [])
    return [["scenario", *place] for place in ([first, *rest], *also)]


_STATED: Final = {
    "type": "object",
    "properties": {
        **{name: {} for name in ("value", "assumed", "measured", "low", "high", "why", "source", "targets")},
        "origin": {"enum": list(Origin)},
    },
    "anyOf": [{"required": [name]} for name in ("value", "assumed", "measured")],
    "additionalProperties": False,
}
"""A value with its origin, which may stand for any value of the scenario."""


def _describe(schema: dict[str, Any], path: list[str], key: Key) -> None:
    """Add *key* to *schema* at *path*; a key of several kinds has a line and a type for each."""
    for part in path:
        schema.setdefault("type", "object")
        if part == NAME:
            schema = schema.setdefault("additionalProperties", {})
        else:
            schema = schema.setdefault("properties", {}).setdefault(part, {})
    line = f"{key.meaning} ({key.takes})"
    lines = schema.get("description", "").splitlines()
    schema["description"] = "\n".join(dict.fromkeys([*lines, line]))
    if path[0] == "scenario" and len(path) > 1 and key.accepts and key.accepts != {"type": "object"}:
        types = schema.setdefault("anyOf", [{"$ref": "#/$defs/stated"}])
        types += [entry for entry in (dict(key.accepts),) if entry not in types]
