"""Variants by their folder: a module or package with a ``SPEC`` and a ``COMPONENT`` is one, and needs no
registration.

What else lies in the folder is what its variants share.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple

from pydantic import BeforeValidator, ValidationError
from pydantic_core import PydanticCustomError

from wbsim.sim.param import BadValue, Given, Spec


class Variant(NamedTuple):
    """A spec and the component that is built from it."""

    spec: type[Any]
    component: Any


@cache
def variants(folder: str) -> dict[str, Variant]:
    """The variants in ``models/<folder>``, by their ``kind``."""
    package = import_module(f"wbsim.models.{folder}")
    found = {}
    for module_info in iter_modules(package.__path__):
        module = import_module(f"wbsim.models.{folder}.{module_info.name}")
        if hasattr(module, "SPEC"):
            found[module.SPEC.model_fields["kind"].default] = Variant(module.SPEC, module.COMPONENT)
    return found


def component_of(folder: str, spec: Spec) -> Any:
    """The component class for *spec*, a variant in *folder*."""
    return next(v.component for v in variants(folder).values() if v.spec is type(spec))


def variant_field(folder: str) -> BeforeValidator:
    """A field that takes any variant of *folder*, told apart by its ``kind``."""

    def parse(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        kind = value.get("kind")
        kind = kind.value if isinstance(kind, Given) else kind
        known = variants(folder)
        if not isinstance(kind, str) or kind not in known:
            raise BadValue(f"is {kind!r}; use one of {', '.join(sorted(known))}", "kind")
        return _validated(known[kind].spec, value, kind)

    return BeforeValidator(parse)


def of_each(folder: str, part: str) -> BeforeValidator:
    """A table by kind of variant in *folder*; an entry is of the spec that the variant's own calls *part*."""

    def parse(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        known = variants(folder)
        specs = {}
        for kind, entry in value.items():
            if kind not in known:
                raise ValueError(f"there is no {kind!r} in {folder}; use one of {', '.join(sorted(known))}")
            spec = getattr(known[kind].spec, part)
            specs[kind] = entry if isinstance(entry, Spec) else _validated(spec, entry, kind)
        return specs

    return BeforeValidator(parse)


def _validated(spec: type[Spec], value: Any, kind: str) -> Spec:
    try:
        return spec.model_validate(value)
    except ValidationError as error:
        # pydantic would flatten it to one text; the places of the single problems are wanted.
        raise PydanticCustomError(
            "variant", "not a valid {kind}", {"kind": kind, "errors": error.errors(), "spec": spec}
        ) from None
