"""Converts a scenario to a document with every number, and to the text that identifies the scenario."""

from __future__ import annotations

import json
from collections.abc import Mapping

from wbsim.models.scenario import Scenario
from wbsim.sim.param import bare


def resolved(scenario: Scenario) -> dict[str, object]:
    """Return all keys of *scenario*, nested as in a configuration, with values in base units (ns, B, B/s).

    `wbsim show --json` prints the document, and the store of results identifies a run by it.
    """
    document: dict[str, object] = bare(scenario.inputs())
    return document


def canonical(document: Mapping[str, object]) -> str:
    """Return *document* as JSON with sorted keys and no spaces: equal documents have equal texts.

    >>> canonical({"b": 1, "a": 2})
    '{"a":2,"b":1}'
    """
    return json.dumps(document, sort_keys=True, separators=(",", ":"))
