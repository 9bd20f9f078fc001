"""A scenario with every number: as a document, and as the text that identifies it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from wbsim.models.scenario import Scenario
from wbsim.sim.param import bare


def resolved(scenario: Scenario) -> dict[str, object]:
    """Return every key of *scenario*, nested as in a configuration; in base units (ns, B, B/s)."""
    document: dict[str, object] = bare(scenario.inputs())
    return document


def canonical(document: Mapping[str, object]) -> str:
    """Return the one text of *document*."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"))
