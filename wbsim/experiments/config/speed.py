"""A device that is so many times as fast: every time of it divided, every rate multiplied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wbsim.experiments.config.merge import plain
from wbsim.experiments.config.sweeps import scaled
from wbsim.models.variants import variants
from wbsim.sim.param import Given, unit_of


def at_speed(device: Mapping[str, Any], speed: float) -> dict[str, Any]:
    """The inputs of *device* and of all that it is made of, *speed* times as fast."""
    kind = plain(device.get("kind"))
    known = variants("devices")
    if kind not in known:
        return dict(device)
    fields = known[kind].spec.model_fields
    result = dict(device)
    for name, value in device.items():
        if isinstance(value, Mapping):
            result[name] = at_speed(value, speed)
        elif isinstance(value, list) and all(isinstance(member, Mapping) for member in value):
            result[name] = [at_speed(member, speed) for member in value]
        elif name in fields and plain(value) is not None:
            by = {"ns": 1 / speed, "B/s": speed}.get(unit_of(fields[name]))
            result[name] = value if by is None else _times(value, by, speed)
    return result


def _times(value: Any, by: float, speed: float) -> Any:
    if isinstance(value, Given):
        return replace(value, value=scaled(value.value, by), source=f"{value.source}; at speed {speed:g}")
    return scaled(value, by)
