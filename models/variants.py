"""Variants by their folder: a file with a ``SPEC`` and a ``COMPONENT`` is one, and needs no registration."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, ValidationError
from pydantic_core import PydanticCustomError

from sim.param import Given, Spec


class Variant(NamedTuple):
    """A spec and the component that is built from it."""

    spec: type[Spec]
    component: type[Any]


@cache
def variants(folder: str) -> dict[str, Variant]:
    """The variants in ``models/<folder>``, by their ``kind``."""
    package = import_module(f"models.{folder}")
    found = {}
    for module_info in iter_modules(package.__path__):
        module = import_module(f"models.{folder}.{module_info.name}")
        found[module.SPEC.model_fields["kind"].default] = Variant(module.SPEC, module.COMPONENT)
    return found


def component_of(folder: str, spec: Spec) -> type[Any]:
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
        if kind not in known:
            raise ValueError(f"kind is {kind!r}; use one of {', '.join(sorted(known))}")
        try:
            return known[kind].spec.model_validate(value)
        except ValidationError as error:
            # pydantic would flatten it to one text; the places of the single problems are wanted.
            raise PydanticCustomError(
                "variant", "not a valid {kind}", {"kind": kind, "errors": error.errors(), "spec": known[kind].spec}
            ) from None

    return BeforeValidator(parse)


AnyDevice = Annotated[Spec, variant_field("devices")]
AnyFilesystem = Annotated[Spec, variant_field("filesystems")]
AnyThrottling = Annotated[Spec, variant_field("throttling")]
AnyFlusher = Annotated[Spec, variant_field("flushers")]
AnyWorkload = Annotated[Spec, variant_field("workloads")]
