"""The kinds of a component, found by their folder.

A module or package that has a ``SPEC`` and a ``COMPONENT`` is a kind, without registration.  The kinds of a
folder share its other modules.  A configuration chooses a kind by the key ``kind``, or an I/O scheduler by
``scheduler``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final, NamedTuple, get_args

from pydantic import BeforeValidator, ValidationError
from pydantic_core import PydanticCustomError

from wbsim.sim.param import BadValue, Given, Spec


class Kind(NamedTuple):
    """A spec and the component that is built from it; a kind may have several names."""

    spec: type[Any]
    component: Any

    @property
    def names(self) -> tuple[str, ...]:
        """The values of the key ``kind``, or ``scheduler``, that choose this kind."""
        return get_args(self.spec.model_fields[key_of(self.spec)].annotation)


CHOOSES: Final = ("kind", "scheduler")
"""The keys that choose a kind: ``scheduler`` of I/O schedulers, and ``kind`` of all others."""


def key_of(spec: type[Any]) -> str:
    """Return the name of the key by which a configuration chooses the class *spec*, one of `CHOOSES`.

    The name is "scheduler" for an I/O scheduler; for all else it is "kind", also if no key chooses the class.
    """
    return next((key for key in CHOOSES if key in spec.model_fields), CHOOSES[0])


@cache
def kinds(folder: str) -> dict[str, Kind]:
    """Return the kinds in ``models/<folder>`` by their names.

    >>> sorted(kinds("flushers"))
    ['parallel', 'pdflush', 'per_bdi']
    """
    package = import_module(f"wbsim.models.{folder}")
    entries = {}
    for module_info in iter_modules(package.__path__):
        module = import_module(f"wbsim.models.{folder}.{module_info.name}")
        if hasattr(module, "SPEC"):
            kind = Kind(module.SPEC, module.COMPONENT)
            entries.update(dict.fromkeys(kind.names, kind))
    return entries


def component_of(folder: str, spec: Spec) -> Any:
    """Return the component for *spec*, which is the spec of a kind in *folder*.

    The machine calls this class or function, so the machine needs no list of kinds.
    """
    return next(kind.component for kind in kinds(folder).values() if kind.spec is type(spec))


def kind_field(folder: str, key: str = "kind") -> BeforeValidator:
    """Return the validator of a field that takes any kind in *folder*; the table names it as its *key*.

    The validator makes the kind's spec from the table, and leaves a value that is no table as it is.  If
    *key* names no kind, the validator raises `BadValue`.  If the spec refuses the table, it raises an error
    of pydantic with the type "variant".
    """

    def parse(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        kind = value.get(key)
        kind = kind.value if isinstance(kind, Given) else kind
        choices = kinds(folder)
        if not isinstance(kind, str) or kind not in choices:
            message = "is missing" if kind is None else f"is {kind!r}"
            raise BadValue(f"{message}; use one of {', '.join(sorted(choices))}", key)
        spec = choices[kind].spec
        return _validated(spec, {**getattr(spec, "defaults", {}), **value}, kind)

    return BeforeValidator(parse)


def by_kind(folder: str, part: str) -> BeforeValidator:
    """Return the validator of a table by kinds in *folder*.

    The entry of a kind has the class that the kind's spec has as its attribute *part*.  The validator returns
    a dict by kind, and leaves a value that is no table as it is.  An unknown kind makes it raise ValueError,
    and a refused entry an error as with `kind_field`.
    """

    def parse(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        choices = kinds(folder)
        specs = {}
        for kind, entry in value.items():
            if kind not in choices:
                raise ValueError(f"{kind!r} is unknown in {folder}; use one of {', '.join(sorted(choices))}")
            spec = getattr(choices[kind].spec, part)
            specs[kind] = entry if isinstance(entry, Spec) else _validated(spec, entry, kind)
        return specs

    return BeforeValidator(parse)


def _validated(spec: type[Spec], value: Any, kind: str) -> Spec:
    try:
        return spec.model_validate(value)
    except ValidationError as error:
        # pydantic would flatten the error to one text; callers need the place of each problem.
        raise PydanticCustomError(
            "variant",
            "not a valid {kind}",  # noqa: RUF027  pydantic fills it in
            {"kind": kind, "errors": error.errors(), "spec": spec},
        ) from None
