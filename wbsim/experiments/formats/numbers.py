"""Every number of a spec, with its unit, its origin and its source."""

from __future__ import annotations

from typing import Any

from wbsim.experiments.formats.table import table
from wbsim.sim.param import Number, Spec


def numbers_document(spec: Spec) -> dict[str, object]:
    """Return every number of *spec* as a JSON document."""
    return {"numbers": [_number_fields(number) for number in spec.numbers()]}


def numbers_table(spec: Spec) -> str:
    """Return a table of the numbers of *spec*: path, value, unit, origin, source, and the assumed range."""
    rows = []
    for fields in (_number_fields(number) for number in spec.numbers()):
        span = "" if fields["low"] in (None, fields["high"]) else f" [{fields['low']} .. {fields['high']}]"
        targets = f" <- {', '.join(fields['targets'])}" if fields["targets"] else ""
        rows.append(
            (
                fields["path"],
                str(fields["value"]),
                fields["unit"],
                fields["origin"],
                f"{fields['source']}{span}{targets}",
            )
        )
    return table(("number", "value", "unit", "origin", "source"), rows, left_columns=5)


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
