"""All keys of a configuration, made from the specs, in sections: a table of keys for each table of a spec.

A part with several kinds has a section for each kind, so a key that two kinds share stands under both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal, NamedTuple, get_args, get_origin

from pydantic.fields import FieldInfo

from wbsim.experiments.config.keys_without_spec import DEFAULTS, FILE, MORE_KEYS, Key
from wbsim.experiments.config.spec_docs import about, sentences_of
from wbsim.experiments.config.values import in_words, takes
from wbsim.models.filesystems.spec import FilesystemSpec
from wbsim.models.kinds import kinds
from wbsim.models.scenario import (
    DriveSpec,
    KernelSpec,
    MachineSpec,
    MountSpec,
    PathCosts,
    ProgramSpec,
    Scenario,
)
from wbsim.models.workloads.spec import WorkloadSpec
from wbsim.sim.param import Named, Spec, bare, unit_of

NAME: Final = "NAME"
"""The part of a path that stands for any name."""
_FOLDERS: Final = ("devices", "filesystems", "flushers", "throttling")
_BY_KIND: Final[Mapping[type[Spec], str]] = {PathCosts: "Costs", KernelSpec: "Rules"}
"""The specs with a table ``filesystems``, and the name of the spec of an entry in the spec of its kind."""
_CHOSEN: Final = (
    "The kind, which decides the other keys; a table of another kind replaces the complete table."
)


class Section(NamedTuple):
    """The keys of one table.

    * ``path``: the path of the table.
    * ``kind``: the kind of the part that has these keys; empty: the part has one kind.
    * ``about``: paragraphs about the table.
    * ``keys``: the keys.
    """

    path: str
    kind: str
    about: Sequence[str]
    keys: Sequence[Key]


def sections() -> Iterator[Section]:
    """Yield all sections: the top of the file, and then the scenario's."""
    yield Section("", "", [], FILE)
    yield Section("scenario", "", about(Scenario), _rows(Scenario, "", "required"))
    yield from _sections(MachineSpec, "machine", "the machine's")
    yield from _sections(KernelSpec, "kernel", "the kernel's")
    yield _section(MountSpec, "mounts.NAME", "required")
    yield from _sections(FilesystemSpec, "filesystem", "the filesystem's")
    yield _section(ProgramSpec, "programs.NAME", "required")
    for kind, (spec, _) in kinds("workloads").items():
        rows = [_of_program(spec, key) for key in _rows(spec, "workload.", "the command's")]
        yield Section("workload", kind, about(spec), rows)


def _sections(spec: type[Spec], path: str, default: str) -> Iterator[Section]:
    """Yield the sections of the table at *path*, which *spec* or one of its kinds describes."""
    of_kinds = _kinds_of(spec)
    if not of_kinds:
        section = _section(spec, path, default)
        if section.keys:
            yield section
        yield from _below(spec, path, default)
        return
    choices = ", ".join(f'`"{kind}"`' for kind in of_kinds)
    chosen = Key(f"{path}.kind", _CHOSEN, choices, default)
    yield Section(path, "", about(spec)[:1], [*MORE_KEYS.get(path, ()), chosen])
    for kind, one in of_kinds.items():
        yield Section(path, kind, about(one), _rows(one, f"{path}.", default))
        yield from _below(one, path, default)


def _section(spec: type[Spec], path: str, default: str) -> Section:
    """Return the section of *spec* without the tables in it."""
    return Section(path, "", about(spec), [*MORE_KEYS.get(path, ()), *_rows(spec, f"{path}.", default)])


def _rows(spec: type[Spec], prefix: str, default: str) -> list[Key]:
    """Return the keys of *spec* that are no tables; *default* is the default of a field that has none."""
    sentences = sentences_of(spec)
    return [
        Key(f"{prefix}{name}", sentences[name], takes(field), _default(f"{prefix}{name}", field, default))
        for name, field in spec.model_fields.items()
        if name != "kind" and not table_in(spec, field)
    ]


def _default(path: str, field: FieldInfo, otherwise: str) -> str:
    if path in DEFAULTS:
        return DEFAULTS[path]
    if field.is_required():
        return otherwise
    default = in_words(field.default, unit_of(field))
    return default if otherwise == "required" else f"{otherwise}, or {default}"


def _of_program(spec: type[WorkloadSpec], key: Key) -> Key:
    """Return *key* of the workload *spec* with its default: the command's, or the program's cost."""
    name = key.path.removeprefix("workload.")
    field = spec.model_fields[name]
    if name in spec.costs:
        return key._replace(default=in_words(bare(spec.costs[name]), unit_of(field)))
    if name in spec.fields_of([spec.example]) or field.is_required():
        return key._replace(default="the command's")
    return key._replace(default=in_words(field.default, unit_of(field)))


def _below(spec: type[Spec], path: str, default: str) -> Iterator[Section]:
    """Yield the sections of the tables in *spec*, which stands at *path*."""
    for name, field in spec.model_fields.items():
        of = table_in(spec, field)
        if of is Spec:
            for kind, (whole, _) in kinds("filesystems").items():
                yield from _sections(getattr(whole, _BY_KIND[spec]), f"{path}.{name}.{kind}", default)
        elif of is DriveSpec:
            yield from _sections(of, f"{path}.{name}.{NAME}", "the drive's")
        elif of is not None:
            yield from _sections(of, f"{path}.{name}", default)


def table_in(spec: type[Spec], field: FieldInfo) -> type[Spec] | None:
    """Return the spec of the table in *field* of *spec*; None for a value, and for a device in a device."""
    annotation: object = field.annotation
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Named:
        (annotation,) = get_args(annotation)
    if not isinstance(annotation, type) or not issubclass(annotation, Spec):
        return None
    return None if annotation is not Spec and issubclass(spec, annotation) else annotation


def _kinds_of(spec: type[Spec]) -> Mapping[str, type[Spec]]:
    """Return the specs of the kinds of *spec* by name; empty if *spec* is not the base of several kinds."""
    if "kind" not in spec.model_fields or get_origin(spec.model_fields["kind"].annotation) is Literal:
        return {}
    return {
        name: kind.spec
        for folder in _FOLDERS
        for name, kind in kinds(folder).items()
        if issubclass(kind.spec, spec)
    }
