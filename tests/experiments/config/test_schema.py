"""The keys of a configuration: each has a sentence, the values that it takes, and its default."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import Field

from wbsim.experiments.config.experiment import config_path, load
from wbsim.experiments.config.grammar import keys_at
from wbsim.experiments.config.keys import Section, sections, table_in
from wbsim.experiments.config.schema import json_schema
from wbsim.experiments.config.spec_docs import about, sentences_of
from wbsim.experiments.config.values import amount, in_words, json_type, takes
from wbsim.models.kinds import kinds
from wbsim.models.scenario import Scenario
from wbsim.models.workloads.spec import Directories
from wbsim.sim.param import Bytes, BytesPerS, Count, Flag, Interval, Ns, Real, Spec, Threads
from wbsim.sim.units import GIB, KIB, MS, S

CONFIGS = sorted(config_path("x").parent.glob("*.toml"))


def specs(base: type[Spec] = Spec) -> Iterator[type[Spec]]:
    """Yield all specs of the models."""
    for folder in ("devices", "filesystems", "flushers", "throttling", "workloads"):
        assert kinds(folder)  # imports them
    for spec in base.__subclasses__():
        if spec.__module__.startswith("wbsim."):
            yield from (spec, *specs(spec))


def test_each_field_of_each_spec_has_a_sentence() -> None:
    """A field that holds a table is described by the spec of the table instead."""
    found = list(specs())
    assert Scenario in found
    for spec in found:
        sentences = sentences_of(spec)
        for name, field in spec.model_fields.items():
            table = table_in(spec, field)
            if table is not None:
                assert table is Spec or about(table)
            elif name != "kind":
                assert name in sentences, f"{spec.__name__}.{name} needs a bullet in the docstring"
                assert sentences[name].endswith(".")
                assert "None" not in sentences[name]


def test_bullets_of_specs_name_existing_attributes() -> None:
    """A bullet with a misspelled name would be lost."""
    for spec in specs():
        for line in (spec.__doc__ or "").splitlines():
            if line.strip().startswith("* ``"):
                name = line.split("``")[1]
                assert name in spec.model_fields or hasattr(spec, name), f"{spec.__name__}: {name}"


class _Base(Spec):
    """A base.

    * ``a``: the a of the base.
    * ``b``: a text
      on two lines.  The ``a`` is another.

    More about it.
    """

    a: Ns
    b: Ns
    c: Ns


class _Derived(_Base):
    """Derived; ``a`` has a special meaning.

    * ``a``: s_lock of the derived spec.
    * ``other``: not a field.
    """


def test_sentences_come_from_bullets_of_the_nearest_class() -> None:
    assert sentences_of(_Derived) == {
        "a": "s_lock of the derived spec.",
        "b": "A text on two lines. The `a` is another.",
    }
    assert about(_Base) == ["A base.", "More about it."]
    assert about(_Derived) == ["Derived; `a` has a special meaning."]


class _Fields(Spec):
    time: Ns
    interval: Interval
    short: Annotated[Ns, Field(le=S)]
    above: Annotated[Ns, Field(gt=0)] | None
    size: Annotated[Bytes, Field(ge=4096, multiple_of=512)]
    rate: BytesPerS | tuple[BytesPerS | None, ...] | None
    count: Count
    threads: Threads
    few: Annotated[Count, Field(le=5)]
    several: Annotated[Count, Field(ge=3)]
    real: Real
    factor: Real | None = Field(default=None, ge=1e-6, le=1e6)
    flag: Flag
    choice: Literal["a", "b"] | tuple[Literal["a", "b"], ...]
    level: Literal[0, 2]
    paths: Directories
    below: _Base


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("time", "time, 0 or more"),
        ("interval", "time, more than 0"),
        ("short", "time, 0 to 1 s"),
        ("above", "time, more than 0"),
        ("size", "size, 4 KiB or more, multiple of 512 B"),
        ("rate", "rate, more than 0; or a list"),
        ("count", "whole number, 1 or more"),
        ("threads", "whole number, 1 to 8192"),
        ("few", "whole number, 1 to 5"),
        ("real", "number"),
        ("factor", "number, 1e-06 to 1000000"),
        ("flag", "true or false"),
        ("choice", '`"a"`, `"b"`; or a list'),
        ("level", "`0`, `2`"),
        ("paths", "list: text"),
        ("below", "table"),
    ],
)
def test_field_takes_its_type_and_range(name: str, words: str) -> None:
    assert takes(_Fields.model_fields[name]) == words


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0, "ns", "0"), (90 * S, "ns", "90 s"), (120 * S, "ns", "2 min"), (1_500, "ns", "1500 ns"),
        (3 * MS, "ns", "3 ms"), (4 * KIB, "B", "4 KiB"), (GIB, "B", "1 GiB"), (4_000, "B", "4 kB"),
        (500_000_000, "B/s", "500 MB/s"), (7, "1", "7"), (0.5, "1", "0.5"),
    ],
)  # fmt: skip
def test_amount_has_the_largest_unit_without_a_fraction(value: Any, unit: str, words: str) -> None:
    assert amount(value, unit) == words
    assert in_words(value, unit) == words


@pytest.mark.parametrize(
    ("value", "words"), [(None, "none"), ((), "none"), (False, "false"), ("xfs", '"xfs"')]
)
def test_default_is_written_as_in_a_configuration(value: Any, words: str) -> None:
    assert in_words(value, "1") == words


@pytest.fixture(scope="module")
def all_sections() -> list[Section]:
    return list(sections())


def test_each_key_stands_once_under_each_kind(all_sections: list[Section]) -> None:
    """A key that kinds share stands under each; the keys of a disk stand in one place only."""
    places = Counter((section.kind, key.path) for section in all_sections for key in section.keys)
    assert set(places.values()) == {1}
    device = "machine.disks.NAME.device"
    for kind in ("disk", "ssd", "write_cache"):
        assert places[kind, f"{device}.size"] == places[kind, f"{device}.link"] == 1
    for kind in ("bulkstat", "dd", "find", "fio", "fs_mark", "one_call", "rm", "sync"):
        assert places[kind, "workload.fork_time"] == places[kind, "workload.directories"] == 1
    assert places["", "machine.disks.NAME.queue.nr_requests"] == 1


@pytest.mark.parametrize(
    ("path", "default"),
    [
        ("title", "required"),
        ("give_up", "100000 s"),
        ("machine.processors.count", "the machine's"),
        ("machine.processors.program_scale", "the machine's, or none"),
        ("machine.disks.NAME.queue.wbt", "the drive's"),
        ("machine.disks.NAME.device.chunk", "the drive's"),
        ("kernel.dirty.dirty_ratio", "the kernel's"),
        ("kernel.filesystems.xfs.wraps", "the kernel's"),
        ("kernel.flusher.max_threads", "the kernel's, or 8"),
        ("mounts.NAME.disk", "the only disk"),
        ("mounts.NAME.files", "0"),
        ("filesystem.journal.expire", "the filesystem's"),
        ("programs.NAME.memory", "0"),
        ("programs.NAME.after", "none"),
        ("mounts.NAME.contents", "none"),
        ("workload.bs", "the command's"),
        ("workload.read_time", "250 ns"),
        ("workload.every", "none"),
    ],
)
def test_default_is_a_value_or_its_part(path: str, default: str, all_sections: list[Section]) -> None:
    """A field takes the value of its part, of the command, or of the costs of its program."""
    defaults = {key.default for section in all_sections for key in section.keys if key.path == path}
    assert defaults == {default}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_number_of_a_scenario_has_a_key(path: Path, all_sections: list[Section]) -> None:
    """The keys include all numbers of the scenarios of the configurations that come with the package."""
    known = {key.path for section in all_sections for key in section.keys}
    for number in load(path).cases[0].scenario.numbers():
        part, _, rest = number.path.partition("[")[0].partition(".")
        name, _, key = rest.partition(".")
        if part in ("mounts", "programs"):
            below = key.partition(".")[0]
            path_ = key if below in ("filesystem", "workload") else f"{part}.NAME.{key}"
        elif rest.startswith(("disks.", "arrays.")):
            path_ = ".".join([part, name, "NAME", *key.split(".")[1:]])
        else:
            path_ = f"{part}.{rest}" if rest else part
        assert path_ in known or ".members" in path_ or ".behind." in path_, number.path


def _at(schema: dict[str, Any], path: str) -> dict[str, Any]:
    for part in path.split("."):
        schema = schema["additionalProperties"] if part == "NAME" else schema["properties"][part]
    return schema


def test_schema_describes_each_key(all_sections: list[Section]) -> None:
    """A description has the sentence; the keys of several kinds have the sentences of all."""
    schema = json_schema()
    for section in all_sections:
        for key in section.keys:
            top = {"title", "scenario", "replications", "quick", "variants", "sweep"}
            path = key.path if key.path.split(".")[0] in top else f"scenario.{key.path}"
            assert f"{key.meaning} ({key.takes})" in _at(schema, path)["description"].splitlines()
    for path in ("mounts.NAME.agcount", "programs.NAME.loops", "workload.command", "workload.start"):
        assert _at(schema, f"scenario.{path}")["description"]
    size = _at(schema, "scenario.machine.disks.NAME.device.size")["description"]
    assert len(size.splitlines()) == 3


@pytest.mark.parametrize(
    ("programs", "valid"),
    [
        ({"a": "sync"}, True),
        ({"a": {"command": "sync"}}, True),
        (["sync"], True),
        ({"a": 5}, False),
        ("sync", False),
    ],
)
def test_schema_takes_programs_as_tables_or_texts(programs: object, valid: bool) -> None:
    document = {"title": "t", "scenario": {"programs": programs}}
    errors = list(jsonschema.Draft202012Validator(json_schema()).iter_errors(document))
    assert (not errors) == valid


@pytest.mark.parametrize(
    ("name", "accepted", "refused"),
    [
        ("few", [1, 5, "x2"], [0, 6, "5", 1.5, True]), ("several", [3], [2]), ("real", [0.5, 7], ["7"]),
        ("factor", [1e-6], [0, 2e6]), ("flag", [True], [1, "true"]), ("choice", ["a", ["b", "a"]], ["c"]),
        ("level", [0, 2], [1]), ("paths", [["/a"], "/a", 3], [1.5]),
        ("time", ["5 ms", "1.5 s", "x3"], [5, "5 B"]),
        ("rate", ["1 MB/s", ["1 B/s"]], ["1 MB"]), ("size", ["4 KiB"], ["4 K"]), ("below", [{}], [1]),
    ],
)  # fmt: skip
def test_type_of_a_field_takes_what_a_configuration_may_write(
    name: str, accepted: list[Any], refused: list[Any]
) -> None:
    schema = jsonschema.Draft202012Validator(json_type(_Fields.model_fields[name]))
    assert [value for value in accepted if not schema.is_valid(value)] == []
    assert [value for value in refused if schema.is_valid(value)] == []


def marks(lines: str) -> list[str]:
    """Return the keys that an editor marks in a scenario of *lines*."""
    document = tomllib.loads(f'title = "t"\n[scenario]\n{lines}\n')
    found = jsonschema.Draft202012Validator(json_schema()).iter_errors(document)
    return [".".join(map(str, error.absolute_path)).removeprefix("scenario.") for error in found]


@pytest.mark.parametrize(
    "line",
    [
        'machine.memory.memory = "16 GiB"', 'machine.memory.memory = "x2"', "machine.processors.count = 8",
        'machine.processors.wake_time = { assumed = "5 us", low = "1 us", high = "9 us", why = "a guess" }',
        "kernel.dirty.dirty_bytes = 1048576", 'kernel.dirty.dirty_bytes = "1 MiB"', "sync_after = true",
        'kernel.flusher.kind = "pdflush"', 'kernel.plug.tried = "all"', "machine.queue.limits.nomerges = 2",
        'machine.disks.md0.device = { kind = "raid0", members = { like = "sata-disk", count = 2 } }',
        'machine.disks.sda = { like = "pm9a3", count = 3 }', 'mounts.a = { like = "xfs", each = "sda" }',
        'programs = ["sync"]', 'workload = { command = ["dd if=a of=b", "sync"], start = "5 s" }',
        'workload.bs = ["4 KiB", "8 KiB"]', "workload.directories = 4", 'workload.directories = ["/a"]',
    ],
)  # fmt: skip
def test_editor_marks_nothing_in_a_correct_line(line: str) -> None:
    assert marks(line) == []


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('machine.memory.memory = "16 s"', "machine.memory.memory"),
        ("machine.memory.memory = 16", "machine.memory.memory"),
        ("machine.processors.count = 0", "machine.processors.count"),
        ("machine.processors.count = 8193", "machine.processors.count"),
        ("kernel.dirty.dirty_ratio = 101", "kernel.dirty.dirty_ratio"),
        ('kernel.plug.tried = "al"', "kernel.plug.tried"),
        ('kernel.flusher.kind = "pdflushd"', "kernel.flusher.kind"),
        ("sync_after = 1", "sync_after"),
        ("machine.memory.memori = 1", "machine.memory"),
        ("workload.looops = 2", "workload"),
        (
            'machine.processors.wake_time = { assumed = "5 us", lowest = "1 us" }',
            "machine.processors.wake_time",
        ),
        ("machine.queue.limits.nomerges = 3", "machine.queue.limits.nomerges"),
        ("machine.device.latenzy = 3", "machine.device"),
    ],
)
def test_editor_marks_a_wrong_value_at_its_key(line: str, key: str) -> None:
    """A wrong unit, a number out of range, an unknown choice, and a misspelled key."""
    assert marks(line) == [key]


def test_variant_has_the_keys_of_the_scenario() -> None:
    schema = jsonschema.Draft202012Validator(json_schema())

    def wrong(variant: dict[str, Any]) -> bool:
        document = {"title": "t", "scenario": {}, "variants": {"a": variant}}
        return not schema.is_valid(document)

    assert not wrong({"kernel": {"like": "6.1"}, "rows": ["P13-wall-p"], "quick": []})
    assert wrong({"kernel": {"likes": "6.1"}})
    assert wrong({"row": []})


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_schema_takes_each_value_of_a_scenario(path: Path) -> None:
    """Numbers as `show` has them, with the unit of their key, are values that an editor accepts."""
    schema = json_schema()
    scenario = _at(schema, "scenario")
    for number in load(path).cases[0].scenario.numbers():
        part, _, rest = number.path.partition(".")
        if part not in ("kernel", "machine") or "disks" in rest or number.value is None or "[" in rest:
            continue
        found = _at(scenario, re.sub(r"^machine\.arrays\.[^.]+", "machine.arrays.NAME", number.path))
        value = number.value if number.unit == "1" else amount(number.value, number.unit)
        value = f"0 {UNITS[number.unit]}" if value == "0" else value
        assert jsonschema.Draft202012Validator({**found, "$defs": schema["$defs"]}).is_valid(value), number


UNITS = {"ns": "s", "B": "B", "B/s": "B/s"}


@pytest.mark.parametrize(
    ("table", "keys"),
    [
        (("machine",), {"like", "purpose", "device", "queue"}), (("kernel",), {"like"}),
        (("filesystem",), {"like", "purpose"}),
        (("workload",), {"command", "start", "after", "memory"}),
        (("programs", "a"), {"command", "start", "after", "memory"}),
        (("mounts", "m"), {"like", "purpose", "each", "disk", "at", "files", "contents", "cached_inodes"}),
        (("machine", "disks", "sda"), {"like", "count", "purpose", "sheet", "family", "figures"}),
        (("machine", "disks", "sda", "queue"), {"like"}),
        (("machine", "disks", "sda", "device"), {"like", "speed"}),
        (("machine", "device"), {"like", "speed"}),
        (("machine", "device", "members", "0"), {"like", "count"}),
        (("machine", "memory"), set()), (("machine", "disks"), set()),
    ],
)  # fmt: skip
def test_table_has_keys_besides_those_of_its_spec(table: tuple[str, ...], keys: set[str]) -> None:
    assert set(keys_at(table)) == keys


def test_each_key_of_the_grammar_has_a_sentence(all_sections: list[Section]) -> None:
    assert all(key.meaning.endswith(".") for section in all_sections for key in section.keys)
