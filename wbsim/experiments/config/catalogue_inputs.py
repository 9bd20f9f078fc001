"""Parts of the catalogue as inputs, which a configuration may put its own values over; and back.

What is not changed is the part itself again, which was checked when it was made: of a sweep of thousands of
points, each is asked only for what is its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from wbsim.sim.param import Named, Spec

_INPUTS: Final[dict[int, tuple[Spec, dict[str, Any]]]] = {}
"""By the identity of the part."""
_PARTS: Final[dict[int, Spec]] = {}
"""By the identity of its inputs, which live as long as the part's."""


def inputs_of(part: Spec) -> dict[str, Any]:
    """What would build *part*, of the catalogue, again; shared, and so never changed in place."""
    if id(part) not in _INPUTS:
        _INPUTS[id(part)] = part, part.inputs()
        _PARTS.update(_parts(part, _INPUTS[id(part)][1]))
    return _INPUTS[id(part)][1]


def unchanged(inputs: Any) -> Any:
    """*inputs* with each part of the catalogue that nobody has changed as that part."""
    if id(inputs) in _PARTS:
        return _PARTS[id(inputs)]
    if isinstance(inputs, Mapping):
        return {key: unchanged(below) for key, below in inputs.items()}
    if isinstance(inputs, list):
        return [unchanged(below) for below in inputs]
    return inputs


def _parts(value: Any, inputs: Any) -> Iterator[tuple[int, Spec]]:
    """*value*, if it is a spec, and those in it, by the identity of their *inputs*."""
    if isinstance(value, Spec):
        yield id(inputs), value
        for name in type(value).model_fields:
            yield from _parts(getattr(value, name), inputs[name])
    elif isinstance(value, Named):
        for name, below in value.items():
            yield from _parts(below, inputs[name])
    elif isinstance(value, tuple):
        for below, given in zip(value, inputs, strict=True):
            yield from _parts(below, given)
