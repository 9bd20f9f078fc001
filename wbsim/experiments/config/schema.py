"""The keys of a configuration as a JSON Schema, for editors."""

from __future__ import annotations

from typing import Any, Final

from wbsim.experiments.config.keys import NAME, sections
from wbsim.experiments.config.keys_without_spec import Key

_FILE: Final = ("title", "scenario", "replications", "quick", "variants", "sweep")
"""The keys at the top of a file; all other keys belong to the scenario."""


def json_schema() -> dict[str, object]:
    """Return the schema of a configuration (JSON Schema 2020-12), with a description of each key."""
    schema = _types()
    for section in sections():
        for key in section.keys:
            for path in _places(key.path):
                _describe(schema, path, key)
    scenario = schema["properties"]["scenario"]
    scenario["additionalProperties"] = False
    scenario["properties"]["programs"]["type"] = ["object", "array"]
    scenario["properties"]["programs"]["additionalProperties"]["type"] = ["object", "string"]
    return schema


def _types() -> dict[str, Any]:
    """Return the schema of the keys of the file, without descriptions."""
    texts = {"type": "array", "items": {"type": "string"}}
    lists = {"type": "object", "additionalProperties": {"type": "array"}}
    sweep = {"name": {"type": "string"}, "points": {"type": "array"}, "grid": {**lists}, "zip": {**lists}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
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
    if first in _FILE:
        return [[first, *rest]]
    shared = {"filesystem": [["mounts", NAME, *rest]], "workload": [["programs", NAME, *rest]]}
    also = [["workload", *rest[1:]]] if first == "programs" else shared.get(first, [])
    return [["scenario", *place] for place in ([first, *rest], *also)]


def _describe(schema: dict[str, Any], path: list[str], key: Key) -> None:
    """Add the description of *key* to *schema* at *path*; a key of several kinds has several lines."""
    for part in path:
        schema.setdefault("type", "object")
        if part == NAME:
            schema = schema.setdefault("additionalProperties", {})
        else:
            schema = schema.setdefault("properties", {}).setdefault(part, {})
    line = f"{key.meaning} ({key.takes})"
    lines = schema.get("description", "").splitlines()
    schema["description"] = "\n".join(dict.fromkeys([*lines, line]))
