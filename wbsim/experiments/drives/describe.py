"""`wbsim describe-drive`: a drive file from a data sheet, and from what fio measured.

The sheet is a file with a table ``sheet``, as the drives of the catalogue have it; `FlashSheet` and
`DiskSheet` are its keys.  A job of fio is named after the key that it measures, so its result is the figure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

from wbsim.experiments.config.problems import Problems, bad, unknown_key
from wbsim.experiments.config.sheets import drive_in
from wbsim.experiments.config.toml_tree import NotToml, parse_toml
from wbsim.experiments.config.tree import Table, with_origins
from wbsim.models.catalogue.data_files import names_in, part_in
from wbsim.models.catalogue.drives import FOLDER
from wbsim.models.devices.spec import DiskSpec, SsdSpec
from wbsim.sim.param import Given, Inputs, Origin, Spec, measured, unit_of
from wbsim.sim.text_files import text_of
from wbsim.sim.units import KIB, MIB, SCALES

BEGINS: Final = "# A drive by wbsim describe-drive"
"""The first characters of every drive file that wbsim writes."""
MOST_BYTES: Final = 16 * MIB


class Job(NamedTuple):
    """A job of fio: its direction, the block sizes that it may have, and the field that is the figure.

    ``alone``: it has one request in flight.  ``durable``: it syncs after each write.
    """

    rw: tuple[str, ...]
    block: tuple[int, int]
    field: str
    alone: bool = False
    durable: bool = False


_READ: Final = ("sheet", "purpose", "family", "figures")
"""The keys of a file with a sheet; `describe` needs the first."""
JOBS: Final = {
    "sequential_write": Job(("write",), (128 * KIB, 16 * MIB), "bw_bytes"),
    "sequential_write_after": Job(("write",), (128 * KIB, 16 * MIB), "bw_bytes"),
    "random_write": Job(("randwrite",), (4 * KIB, 4 * KIB), "iops"),
    "random_write_qd1": Job(("randwrite",), (4 * KIB, 4 * KIB), "iops", alone=True),
    "durable_writes": Job(("write", "randwrite"), (4 * KIB, 4 * KIB), "iops", alone=True, durable=True),
}
"""By the name of the job, which is the key of the sheet."""


def describe(sheet: str, results: Sequence[Path] = ()) -> str:
    """Return the text of a drive file (TOML) for the drive in *sheet*, with the figures of fio's *results*.

    *sheet* is a file with a table ``sheet``, or the name of a drive of the catalogue that has one.  A
    measured figure replaces that of the sheet.

    Raises:
        BadInput: a file cannot be read, or its figures are unknown, missing or contradict each other.  Or two
            results have the same job, or a job that does not measure its figure.
    """
    table = sheet_of(sheet)
    measured_in: dict[str, Path] = {}
    for path in results:
        for key, number in _figures_of(path):
            if key in measured_in:
                remedy = "give one result of each job, and several processes group_reporting"
                raise bad(str(path), f"job {key} is in {measured_in[key]}, too; {remedy}")
            measured_in[key] = path
            table[key] = number
            table.places = {**table.places, key: str(path)}
    problems = Problems()
    drive = drive_in(problems, table)
    problems.raise_found()
    assert drive is not None
    return "\n".join([*_heading(sheet, results, drive["device"]), *_lines(drive)]) + "\n"


def sheet_of(sheet: str) -> Table:
    """Return the figures in *sheet*, a file or a drive of the catalogue, each a `Given`, by their keys.

    Raises:
        BadInput: there is no such file, and no drive with a sheet.  Or the file is not TOML, has no table
            ``sheet``, or has a key other than ``sheet``, ``purpose``, ``family`` and ``figures``.
    """
    if sheet in sheet_names():
        return Table(part_in(FOLDER, sheet)["sheet"]).set_place(("sheet",), sheet, {})
    try:
        text = text_of(Path(sheet), MOST_BYTES)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "is not text"
        matches = get_close_matches(sheet, sheet_names(), n=1, cutoff=0.7)
        remedy = (
            f"did you mean {matches[0]}?"
            if matches
            else "give a file with a table [sheet], or a disk with one"
        )
        raise bad(sheet, f"{why}; {remedy}") from None
    try:
        document = parse_toml(text, sheet)
    except NotToml as error:
        raise bad(sheet if error.line is None else f"{sheet}:{error.line}", str(error)) from None
    except ValueError as error:
        raise bad(sheet, str(error)) from None
    if not isinstance(document.get("sheet"), Table):
        raise bad(sheet, "has no table [sheet]; the page on drives (docs/drives.md) has its keys")
    for key in document:
        if key not in _READ:
            message = f"is not read; remove it, or name {sheet} itself as the `like` of a disk"
            raise bad(document.place_of(key), message, key)
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
    common = _table(document, "global options")
    for result in jobs:
        yield _figure_of(path, result, common)


def _figure_of(path: Path, result: Any, common: Mapping[str, Any]) -> tuple[str, Given]:
    """Return the key of the sheet, and the figure, of a job's *result*; *common*: the options of all jobs."""
    name = result.get("jobname") if isinstance(result, dict) else None
    if name not in JOBS:
        names = ", ".join(JOBS)
        hint = unknown_key(str(name), list(JOBS)) if isinstance(name, str) else "the job has no name"
        raise bad(str(path), f"job {name!r}: {hint.replace('key', 'name', 1)}; jobs are called {names}")
    job = JOBS[name]
    fault = _fault_of(job, {**common, **_table(result, "job options")})
    if fault:
        raise bad(str(path), f"job {name} has {fault}")
    write = _table(result, "write")
    value = write.get(job.field)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < 10**15:
        raise bad(str(path), f"job {name} has no writes: write.{job.field} is {value}; repeat the run")
    return name, measured(round(value), f"fio, job {name} in {path.name}")


def _fault_of(job: Job, options: Mapping[str, Any]) -> str:
    """Return what in the *options* of a run makes its result another figure than that of *job*, or ""."""
    rw = options.get("rw", options.get("readwrite", "read"))
    if rw not in job.rw:
        return f"rw={rw}; give rw={job.rw[0]}"
    block = _block_size(options.get("bs", options.get("blocksize", "4k")))
    low, high = job.block
    if block is not None and not low <= block <= high:
        expected = f"{low // KIB} KiB" if low == high else f"{low // KIB} KiB or more"
        return f"blocks of {block} B; give {expected}"
    depth = options.get("iodepth", "1")
    if job.alone and str(depth) != "1":
        return f"iodepth={depth}; give 1"
    if job.durable and not any(str(options.get(key, "0")) not in ("0", "none") for key in _SYNCS):
        return "neither fdatasync=1 nor fsync=1; give one of them"
    return ""


_SYNCS: Final = ("fdatasync", "fsync", "sync")


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


def sheet_names() -> list[str]:
    """Return the names of the drives of the catalogue that have a sheet."""
    return [name for name in names_in(FOLDER) if "sheet" in part_in(FOLDER, name)]


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
