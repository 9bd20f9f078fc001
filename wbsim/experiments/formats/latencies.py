"""The latencies of system calls as tables, and what the slowest calls waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from wbsim.experiments.formats.table import duration_text, table
from wbsim.experiments.results.outcome import PERCENTILES, CallResult, Outcome, SlowestCalls

CallsOf = Mapping[str, Mapping[str, CallResult]]
"""The calls of each program, by kind."""
_LEAST_SHARE: Final = 0.01
"""The smallest part of the time of the slowest calls that is named."""


def calls_of(outcome: Outcome) -> dict[str, dict[str, CallResult]]:
    """Return the calls of each program of *outcome*: by the program's name, and then by the kind of call."""
    return {name: program.calls for name, program in outcome.programs.items()}


def latency_table(outcomes: Sequence[Outcome]) -> str | None:
    """Return a table with a line for each kind of call of each program; None if there was no call.

    A line has the number of calls, and the mean, the percentiles and the maximum of their latencies.  The
    variant and the program are named if there are several.
    """
    rows = [
        (
            outcome.variant, program, name, _count(calls.count), duration_text(calls.mean_ns),
            *(duration_text(calls.percentiles_ns[percent]) for percent in PERCENTILES),
            duration_text(calls.max_ns),
        )
        for outcome in outcomes
        for program, kinds in calls_of(outcome).items()
        for name, calls in kinds.items()
    ]  # fmt: skip
    header = [
        "variant",
        "program",
        "call",
        "calls",
        "mean",
        *(f"p{percent}" for percent in PERCENTILES),
        "max",
    ]
    return _narrowed(header, rows, left_columns=3) if rows else None


def slowest_table(programs: CallsOf) -> str | None:
    """Return a table of the slowest calls of each kind, with the share (%) of each wait in their time.

    *programs*: the result of `calls_of`.  A line also has the number and the least latency of the slowest
    calls, which `SlowestCalls` describes.  The time without a wait is called work; shares below 1 % are left
    out.  Kinds whose slowest calls waited less than 1 % of their time are left out; None: none is left.
    """
    rows = [
        (
            program, name, f"{_count(slowest.calls)} of {_count(calls.count)}",
            duration_text(slowest.from_ns), _causes(slowest),
        )
        for program, kinds in programs.items()
        for name, calls in kinds.items()
        for slowest in (calls.slowest,)
        if sum(slowest.waits_ns.values()) >= _LEAST_SHARE * slowest.total_ns
    ]  # fmt: skip
    header = ["program", "call", "the slowest calls", "from", "their time"]
    return _narrowed(header, rows, left_columns=5) if rows else None


def _count(calls: int) -> str:
    return f"{calls:,}".replace(",", " ")


def _causes(slowest: SlowestCalls) -> str:
    """Return the parts of the time of the slowest calls, with their shares."""
    parts = dict(slowest.waits_ns)
    parts["work"] = slowest.total_ns - sum(parts.values())
    shares = {cause: ns / max(slowest.total_ns, 1) for cause, ns in parts.items()}
    return ", ".join(f"{cause} {100 * part:.0f} %" for cause, part in shares.items() if part >= _LEAST_SHARE)


def _narrowed(header: Sequence[str], rows: Sequence[Sequence[str]], left_columns: int) -> str:
    """Return the table without the columns ``variant`` and ``program`` that have one value."""
    columns = [
        number for number, name in enumerate(header)
        if name not in ("variant", "program") or len({row[number] for row in rows}) > 1
    ]  # fmt: skip
    narrow = [[row[number] for number in columns] for row in rows]
    return table(
        [header[number] for number in columns], narrow, left_columns=left_columns - len(header) + len(columns)
    )
