"""All keys of a configuration, made from the specs, in sections: a table of keys for each table of a spec.

A part with several kinds has a section for each kind, so a key that two kinds share stands under both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal, NamedTuple, get_args, get_origin

from pydantic.fields import FieldInfo

from wbsim.experiments.config.grammar import NAME, TABLES, Default, File, Keys, ScenarioKeys, Takes
from wbsim.experiments.config.spec_docs import about, sentences_of
from wbsim.experiments.config.values import in_words, json_type, takes
from wbsim.models.filesystems.spec import FilesystemSpec
from wbsim.models.kinds import key_of, kinds
from wbsim.models.md.spec import ArraySpec
from wbsim.models.scenario import (
    DriveSpec,
    FileSpec,
    KernelSpec,
    MachineSpec,
    MountSpec,
    PathCosts,
    ProgramSpec,
    Scenario,
)
from wbsim.models.workloads.spec import FROM_THE_COMMAND, WorkloadSpec
from wbsim.sim.param import Named, Spec, bare, unit_of

_FOLDERS: Final = ("devices", "filesystems", "flushers", "io_schedulers", "throttling")
_BY_KIND: Final[Mapping[tuple[type[Spec], str], tuple[str, str]]] = {
    (PathCosts, "filesystems"): ("filesystems", "Costs"),
    (KernelSpec, "filesystems"): ("filesystems", "Rules"),
    (KernelSpec, "schedulers"): ("io_schedulers", "Rules"),
}
"""The tables by kind: the folder of the kinds, and the attribute of a kind's spec with the entry's spec."""
_CHOSEN: Final = (
    "The kind, which decides the other keys; a table of another kind replaces the complete table."
)


class Key(NamedTuple):
    """One key: its path, a sentence or more, the values that it takes in words, and its default in words.

    ``accepts`` is the JSON Schema of the values.
    """

    path: str
    meaning: str
    takes: str
    default: str
    accepts: Mapping[str, object]


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
    """Yield all sections of a configuration, for the reference and the JSON Schema.

    The order is: the top of the file, the scenario, machine, kernel, mounts, filesystem, programs, workloads.
    """
    yield Section("", "", [], list(_grammar_rows(File, "")))
    yield Section("scenario", "", about(Scenario), _rows(Scenario, "", "required"))
    yield from _sections(MachineSpec, "machine", "the machine's")
    yield from _sections(KernelSpec, "kernel", "the kernel's")
    yield _section(MountSpec, "mounts.NAME", "required")
    yield _section(FileSpec, "mounts.NAME.contents", "required")
    yield from _sections(FilesystemSpec, "filesystem", "the filesystem's")
    yield _section(ProgramSpec, "programs.NAME", "required")
    for kind, (spec, _) in kinds("workloads").items():
        keys = _rows(spec, "workload.", "the command's")
        rows = [_of_program(spec, key) for key in keys if _field(key) not in FROM_THE_COMMAND]
        yield Section("workload", kind, about(spec), rows)


def _sections(spec: type[Spec], path: str, default: str) -> Iterator[Section]:
    """Yield the sections of the table at *path*, which *spec* or one of its kinds describes."""
    of_kinds = _kinds_of(spec)
    if not of_kinds:
        section = _section(spec, path, default)
        if section.keys:
            yield section
        yield from _inner_sections(spec, path, default)
        return
    choices = ", ".join(f'`"{kind}"`' for kind in of_kinds)
    key = key_of(spec)
    meaning = sentences_of(spec).get(key, _CHOSEN)
    kind_key = Key(f"{path}.{key}", meaning, choices, default, {"enum": list(of_kinds)})
    yield Section(path, "", about(spec)[:1], [*_more_keys(spec, path), kind_key])
    for kind_spec in dict.fromkeys(of_kinds.values()):
        names = " or ".join(name for name, spec in of_kinds.items() if spec is kind_spec)
        yield Section(path, names, about(kind_spec), _rows(kind_spec, f"{path}.", default))
        yield from _inner_sections(kind_spec, path, default)


def _section(spec: type[Spec], path: str, default: str) -> Section:
    """Return the section of *spec* without the tables in it."""
    return Section(path, "", about(spec), [*_more_keys(spec, path), *_rows(spec, f"{path}.", default)])


def _more_keys(spec: type[Spec], path: str) -> Iterator[Key]:
    """Yield the keys that the grammar adds to the table of *spec* at *path*."""
    if path in TABLES:
        yield from (
            key for key in _grammar_rows(TABLES[path], f"{path}.") if _field(key) not in spec.model_fields
        )


def _field(key: Key) -> str:
    return key.path.rpartition(".")[2]


def _grammar_rows(table: type[Keys], prefix: str) -> Iterator[Key]:
    """Yield the keys of the grammar's *table*, and those of the tables in it."""
    sentences = sentences_of(table)
    for name, field in table.model_fields.items():
        path = f"{prefix}{name}"
        tables = [part for part in (field.annotation, *get_args(field.annotation)) if _is_table(part)]
        has_names = bool(get_args(field.annotation))
        key_path = f"{path}.{NAME}" if tables and has_names else path
        words = "table" if tables else takes(field)
        default = _default_said(field) or _usual(field)
        accepts = {"type": "object"} if tables else json_type(field)
        yield Key(key_path, sentences.get(name, ""), words, default, accepts)
        for inner in tables:
            if inner is not ScenarioKeys:
                yield from _grammar_rows(inner, f"{key_path}.")


def _is_table(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Keys)


def _default_said(field: FieldInfo) -> str:
    return next((mark.words for mark in field.metadata if isinstance(mark, Default)), "")


def _usual(field: FieldInfo) -> str:
    return "required" if field.is_required() else in_words(field.default, unit_of(field))


def _rows(spec: type[Spec], prefix: str, default: str) -> list[Key]:
    """Return the keys of *spec* that are no tables; *default* is the default of a field that has none."""
    sentences = sentences_of(spec)
    fields = {
        name: field
        for name, field in spec.model_fields.items()
        if name != key_of(spec) and not table_in(spec, field)
    }
    return [
        Key(
            f"{prefix}{name}",
            sentences.get(name, ""),
            takes(statement := _statement(prefix, name, field)),
            _default(f"{prefix}{name}", field, default),
            json_type(statement),
        )
        for name, field in fields.items()
    ]


def _statement(prefix: str, name: str, field: FieldInfo) -> FieldInfo:
    """Return the field of the grammar for the key *name* if it says what the key takes, else *field*."""
    own = TABLES.get(prefix[:-1], Keys).model_fields.get(name)
    return own if own is not None and any(isinstance(mark, Takes) for mark in own.metadata) else field


def _default(path: str, field: FieldInfo, otherwise: str) -> str:
    """Return the default of *field*: what the grammar says of its *path*, or else what the spec has."""
    table, _, name = path.rpartition(".")
    keys = (TABLES.get(table) if table else ScenarioKeys) or Keys
    if name in keys.model_fields:
        return _default_said(keys.model_fields[name])
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


def _inner_sections(spec: type[Spec], path: str, default: str) -> Iterator[Section]:
    """Yield the sections of the tables in *spec*, which stands at *path*."""
    for name, field in spec.model_fields.items():
        table = table_in(spec, field)
        if table is Spec:
            folder, part = _BY_KIND[spec, name]
            for kind in dict.fromkeys(kinds(folder).values()):
                yield from _sections(getattr(kind.spec, part), f"{path}.{name}.{kind.names[0]}", default)
        elif table is DriveSpec:
            yield from _sections(table, f"{path}.{name}.{NAME}", "the drive's")
        elif table is ArraySpec:
            yield from _sections(table, f"{path}.{name}.{NAME}", "required")
        elif table is not None:
            yield from _sections(table, f"{path}.{name}", default)


def table_in(spec: type[Spec], field: FieldInfo) -> type[Spec] | None:
    """Return the spec of the table that *field* of *spec* holds, also of an optional table.

    Of tables by name (`Named`), return the spec of one; return `Spec` itself if their specs differ.  None for
    a value, and for a device in a device, which would never end.
    """
    annotation: object = field.annotation
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Named:
        (annotation,) = get_args(annotation)
    optional = [part for part in get_args(annotation) if part is not type(None)]
    if len(optional) == 1 and type(None) in get_args(annotation):
        (annotation,) = optional
    if not isinstance(annotation, type) or not issubclass(annotation, Spec):
        return None
    return None if annotation is not Spec and issubclass(spec, annotation) else annotation


def _kinds_of(spec: type[Spec]) -> Mapping[str, type[Spec]]:
    """Return the specs of the kinds of *spec* by name; empty if *spec* is not the base of several kinds."""
    field = spec.model_fields.get(key_of(spec))
    if field is None or get_origin(field.annotation) is Literal:
        return {}
    return {
        name: kind.spec
        for folder in _FOLDERS
        for name, kind in kinds(folder).items()
        if issubclass(kind.spec, spec)
    }
