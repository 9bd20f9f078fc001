"""Every number of a spec, with its unit, its origin and its source."""

from __future__ import annotations

from textwrap import fill
from typing import Any, Final

from wbsim.experiments.config.values import KINDS, amount
from wbsim.experiments.formats.table import WIDTH, duration_text, table
from wbsim.sim.param import Number, Spec
from wbsim.sim.units import parse

_INDENT: Final = "    "


def numbers_document(spec: Spec) -> dict[str, object]:
    """Return every number of *spec* as the document of ``wbsim params --json``.

    Its key ``numbers`` has the list of `number_rows`: path, value, unit, origin and source of each number.
    """
    return {"numbers": number_rows(spec)}


def number_rows(spec: Spec) -> list[dict[str, Any]]:
    """Return every number of *spec*, by the keys path, value, unit, origin, source, low, high and targets.

    The value is in the unit.  Low and high are None for a number without a range; targets are the rows of
    reports to which it was fitted.
    """
    return [_number_fields(number) for number in spec.numbers()]


def numbers_table(spec: Spec, *, sources: bool = False) -> str:
    """Return a table of the numbers of *spec*: path, value with its unit, and origin.

    *sources*: below each number, a line has its source, the range of a guess, and the rows it was fitted to.
    """
    numbers = number_rows(spec)
    rows = [(fields["path"], _value_text(fields), fields["origin"]) for fields in numbers]
    text = table(("number", "value", "origin"), rows, left_columns=3)
    if not sources:
        return text
    lines = text.splitlines()
    return "\n".join(
        [
            *lines[:2],
            *(f"{line}\n{_source_text(fields)}" for line, fields in zip(lines[2:], numbers, strict=True)),
        ]
    )


def quantity_text(value: Any, unit: str) -> str:
    """Return *value* of the base *unit* (ns, B, B/s or another one) with a unit that is easy to read.

    A time has at most three digits, if they are exact.  A value of another unit, and 0, are returned as the
    number alone.

    >>> quantity_text(11_100, "ns"), quantity_text(2_100_000, "ns"), quantity_text(4_096, "B")
    ('11.1 us', '2.1 ms', '4 KiB')
    >>> quantity_text(1_234_567, "ns"), quantity_text(0.3, "1")
    ('1234567 ns', '0.3')
    """
    if unit == "ns" and value:
        text = duration_text(value)
        if parse(text.replace(" ", ""), "time") == value:
            return text
    return amount(value, unit)


def _value_text(fields: dict[str, Any]) -> str:
    """Return the value in the largest unit in which it is a whole number."""
    value, unit = fields["value"], fields["unit"]
    text = str(value) if isinstance(value, bool | str) else quantity_text(value, unit)
    return text if unit in ("1", "", *KINDS) else f"{text} {unit}"


def _source_text(fields: dict[str, Any]) -> str:
    """Return the indented source of a number, in lines that fit a terminal."""
    low, high, unit = fields["low"], fields["high"], fields["unit"]
    span = "" if low in (None, high) else f" [{quantity_text(low, unit)} .. {quantity_text(high, unit)}]"
    targets = f" <- {', '.join(fields['targets'])}" if fields["targets"] else ""
    text = f"{fields['source']}{span}{targets}"
    return fill(text, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _number_fields(number: Number) -> dict[str, Any]:
    provenance = number.provenance
    return {
        "path": number.path,
        "value": number.value,
        "unit": number.unit,
        "origin": provenance.origin.value if provenance else "specified",
        "source": provenance.source if provenance else "the workload's command or the configuration",
        "low": provenance.low if provenance else None,
        "high": provenance.high if provenance else None,
        "targets": list(provenance.targets) if provenance else [],
    }
