"""What a scenario is, with every number: as a document, and as the text that names it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from wbsim.experiments.config.merge import plain
from wbsim.models.scenario import Scenario


def resolved(scenario: Scenario) -> dict[str, Any]:
    """Every key of *scenario*, nested as in a configuration; in base units (ns, B, B/s)."""
    document: dict[str, Any] = _plain_below(scenario.inputs())
    return document


def canonical(document: Mapping[str, Any]) -> str:
    """The one text of *document*."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def _plain_below(value: Any) -> Any:
    value = plain(value)
    if isinstance(value, Mapping):
        return {key: _plain_below(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_below(below) for below in value]
    return value
