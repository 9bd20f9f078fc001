"""`wbsim describe-drive`: a drive file from a data sheet, and from what fio measured.

The sheet is a file with a table ``sheet``, as the drives of the catalogue have it; `FlashSheet` and
`DiskSheet` are its keys.  A job of fio is named after the key that it measures, so its result is the figure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from wbsim.experiments.config.problems import Problems, bad, unknown_key
from wbsim.experiments.config.sheets import drive_in
from wbsim.experiments.config.toml_tree import NotToml, parse_toml
from wbsim.experiments.config.tree import Table, with_origins
from wbsim.experiments.drives.compare import sheet_names
from wbsim.models.catalogue.data_files import part_in
from wbsim.models.catalogue.drives import FOLDER
from wbsim.models.devices.spec import DiskSpec, SsdSpec
from wbsim.sim.param import Given, Inputs, Origin, Spec, measured, unit_of
from wbsim.sim.text_files import text_of
from wbsim.sim.units import KIB, MIB, SCALES

BEGINS: Final = "# A drive by wbsim describe-drive"
"""The first characters of every drive file that wbsim writes."""
MOST_BYTES: Final = 16 * MIB


class Job(NamedTuple):
    """A job of fio: the block sizes that it may have, and the field of the result that is the figure."""

    block: tuple[int, int]
    field: str


JOBS: Final = {
    "sequential_write": Job((128 * KIB, 16 * MIB), "bw_bytes"),
    "sequential_write_after": Job((128 * KIB, 16 * MIB), "bw_bytes"),
    "random_write": Job((4 * KIB, 4 * KIB), "iops"),
    "random_write_qd1": Job((4 * KIB, 4 * KIB), "iops"),
    "durable_writes": Job((4 * KIB, 4 * KIB), "iops"),
}
"""By the name of the job, which is the key of the sheet."""


def describe(sheet: str, results: Sequence[Path] = ()) -> str:
    """Return a drive file (TOML) for the drive in *sheet*, with the figures of fio's *results*.

    *sheet* is a file with a table ``sheet``, or the name of a drive of the catalogue that has one.

    Raises:
        BadInput: a file cannot be read, or its figures are unknown, missing or contradict each other.
    """
    table = _sheet_in(sheet)
    for path in results:
        for key, number in _figures_of(path):
            table[key] = number
            table.places = {**table.places, key: str(path)}
    problems = Problems()
    drive = drive_in(problems, table)
    problems.raise_found()
    assert drive is not None
    return "\n".join([*_heading(sheet, results, drive["device"]), *_lines(drive)]) + "\n"


def _sheet_in(sheet: str) -> Table:
    """Return the figures in *sheet*, each a `Given`."""
    if sheet in sheet_names():
        return Table(part_in(FOLDER, sheet)["sheet"]).set_place(("sheet",), sheet, {})
    try:
        text = text_of(Path(sheet), MOST_BYTES)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "is not text"
        remedy = "give a file with a table [sheet], or a disk of wbsim compare-drives"
        raise bad(sheet, f"{why}; {remedy}") from None
    try:
        document = parse_toml(text, sheet)
    except NotToml as error:
        raise bad(sheet if error.line is None else f"{sheet}:{error.line}", str(error)) from None
    except ValueError as error:
        raise bad(sheet, str(error)) from None
    if not isinstance(document.get("sheet"), Table):
        raise bad(sheet, "has no table [sheet]; the page on drives (docs/drives.md) has its keys")
    return with_origins(document["sheet"])


def _figures_of(path: Path) -> Iterator[tuple[str, Given]]:
    """Yield the figures in *path*, which `fio --output-format=json` wrote, by key of the sheet."""
    remedy = "give the output of fio --output-format=json"
    try:
        document = json.loads(text_of(path, MOST_BYTES))
    except OSError as error:
        raise bad(str(path), f"{error.strerror}; {remedy}") from None
    except (ValueError, RecursionError):
        raise bad(str(path), f"is not JSON; {remedy}") from None
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list) or not jobs:
        raise bad(str(path), f"has no jobs; {remedy}")
    for result in jobs:
        yield _figure_of(path, result)


def _figure_of(path: Path, result: Any) -> tuple[str, Given]:
    """Return the key of the sheet, and the figure, of a job's *result*."""
    name = result.get("jobname") if isinstance(result, dict) else None
    if name not in JOBS:
        names = ", ".join(JOBS)
        hint = unknown_key(str(name), list(JOBS)) if isinstance(name, str) else "the job has no name"
        raise bad(str(path), f"job {name!r}: {hint.replace('key', 'name', 1)}; jobs are called {names}")
    job = JOBS[name]
    options = {**_table(result, "job options")}
    if options.get("rw", "write") not in ("write", "randwrite"):
        raise bad(str(path), f"job {name} has rw={options['rw']}; a figure of a sheet is that of a write")
    block = _block_size(options.get("bs"))
    low, high = job.block
    if block is not None and not low <= block <= high:
        expected = f"{low // KIB} KiB" if low == high else f"{low // KIB} KiB or more"
        raise bad(str(path), f"job {name} has bs={options['bs']}; give {expected}")
    write = _table(result, "write")
    value = write.get(job.field)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < 10**15:
        raise bad(str(path), f"job {name} has no writes: write.{job.field} is {value}; repeat the run")
    return name, measured(round(value), f"fio, job {name} in {path.name}")


def _table(result: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = result.get(key, {})
    return table if isinstance(table, dict) else {}


def _block_size(text: object) -> int | None:
    """Return the bytes of fio's option bs, such as 4k; None if it is not a plain size."""
    if not isinstance(text, str) or not text:
        return None
    factor = {"k": KIB, "m": MIB}.get(text[-1].lower(), 1)
    digits = text.rstrip("kKmM")
    return int(digits) * factor if digits.isdecimal() and len(digits) < 10 else None


def _heading(sheet: str, results: Sequence[Path], device: Inputs) -> Iterator[str]:
    """Yield comments: where the figures come from, and what is not known."""
    sources = ", ".join([sheet, *(path.name for path in results)])
    yield f"{BEGINS}, from {sources}"
    assumed = [key for key, number in _givens(device) if number.origin == Origin.ASSUMED]
    if assumed:
        yield f"# Assumed, because neither says it: {', '.join(assumed)}."
        yield "# wbsim sensitivity shows how far these could change a figure."


def _givens(table: Inputs, prefix: str = "") -> Iterator[tuple[str, Given]]:
    for key, entry in table.items():
        if isinstance(entry, Given):
            yield f"{prefix}{key}", entry
        elif isinstance(entry, Mapping):
            yield from _givens(dict(entry), f"{prefix}{key}.")


def _lines(drive: Inputs) -> Iterator[str]:
    """Yield the lines of the queue and the device."""
    queue, device = drive["queue"], drive["device"]
    yield f'queue.like = "{queue["like"]}"'
    for key, number in _givens(queue):
        yield f"queue.{key} = {_statement(number, '1')}"
    yield ""
    yield "[device]"
    kind = device["kind"].value
    yield f'kind = "{kind}"'
    spec: type[Spec] = DiskSpec if kind == "disk" else SsdSpec
    for key, number in _givens(device):
        if key != "kind":
            yield f"{key} = {_statement(number, _unit_at(spec, key))}"


def _unit_at(spec: type[Spec], key: str) -> str:
    """Return the unit of *key* in *spec*; the key may lead into a nested spec."""
    first, _, rest = key.partition(".")
    field = spec.model_fields[first]
    if not rest:
        return unit_of(field)
    nested = next(
        kind
        for kind in (field.annotation, *getattr(field.annotation, "__args__", ()))
        if isinstance(kind, type) and issubclass(kind, Spec)
    )
    return _unit_at(nested, rest)


def _statement(number: Given, unit: str) -> str:
    """Return *number* as a table of TOML."""
    parts = [f"value = {_amount(number.value, unit)}", f'origin = "{number.origin}"']
    if number.origin == Origin.ASSUMED:
        parts += [f"low = {_amount(number.low, unit)}", f"high = {_amount(number.high, unit)}"]
    return f"{{ {', '.join([*parts, f'source = {json.dumps(number.source, ensure_ascii=False)}'])} }}"


_KINDS: Final = {"ns": "time", "B": "size", "B/s": "rate"}


def _amount(value: Any, unit: str) -> str:
    """Return *value* with the largest unit in which it is whole, as TOML has it."""
    if unit not in _KINDS:
        return json.dumps(value)
    scale = SCALES[_KINDS[unit]]
    name = max(
        (name for name, size in scale.items() if value % size == 0 and name != "min"), key=lambda n: scale[n]
    )
    return f'"{value // scale[name]} {name}"' if value else f'"0 {unit}"'
