"""The report of a replay: its judgements, the requests that other kernels would have issued, a picture.

*eras* is always the result of `what_if`: by the name of the era, the requests that its plugs would have
issued.  It is empty if no other kernel was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wbsim.experiments.captures.conditions import Conditions
from wbsim.experiments.captures.verdict import Verdict
from wbsim.experiments.captures.what_if import Issued
from wbsim.experiments.formats.table import figure_text, table
from wbsim.experiments.pictures.axes import COLOURS, PICTURE_WIDTH, head, save_png
from wbsim.experiments.running.store import replace_whole
from wbsim.models.catalogue.kernels import PLUG_RULES
from wbsim.sim.units import KIB, SECTOR_BYTES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLASSES: Final = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""Upper bounds of the size histogram (KiB); all larger requests form one more class."""


def replay_document(
    path: Path, conditions: Conditions, verdict: Verdict, eras: Mapping[str, Issued]
) -> dict[str, object]:
    """Return the replay as the document that ``wbsim replay --json`` prints.

    *path*: that of the capture.  The keys are ``capture``, ``kernel``, ``device`` and all fields of
    `Verdict`.  With *eras*, ``requests_simulated`` is the number of the era that was asked for.  Only then is
    the key ``what_if`` present: for each era, ``requests`` and ``histogram_kib``.  The histogram has the
    number of requests by the upper bound of their size in KiB, such as "<=64K"; ">1024K" has the larger ones.
    Sizes without requests are absent.
    """
    document: dict[str, object] = {
        "capture": str(path),
        "kernel": conditions.kernel,
        "device": conditions.device,
        "bios": verdict.bios,
        "decisions_equal": verdict.decisions_equal,
        "decisions_total": verdict.decisions_total,
        "full_flush_equal": verdict.full_flush_equal,
        "full_flush_total": verdict.full_flush_total,
        "full_flush_unknown": verdict.full_flush_unknown,
        "by_segments": verdict.by_segments,
        "in_dispatch": verdict.in_dispatch,
        "unjudged": verdict.unjudged,
        "inside_plug": verdict.inside_plug,
        "request_unseen": verdict.request_unseen,
        "events_lost": verdict.events_lost,
        "uncounted_losses": verdict.uncounted_losses,
        "without_sectors": verdict.without_sectors,
        "mismatches": [mismatch._asdict() for mismatch in verdict.mismatches],
        "requests_kernel": verdict.requests_kernel,
        "requests_simulated": verdict.requests_simulated,
    }
    if conditions.what_if_era is not None and eras:
        document["requests_simulated"] = eras[conditions.what_if_era].requests
        document["what_if"] = {
            name: {"requests": outcome.requests, "histogram_kib": _histogram(outcome.lengths)}
            for name, outcome in eras.items()
        }
    return document


def replay_text(path: Path, conditions: Conditions, verdict: Verdict, eras: Mapping[str, Issued]) -> str:
    """Return the replay as a page of text: counts, first differences, and a row for each of *eras*.

    A row has the number, the mean size (KiB) and the size classes of an era's requests.  *path*: that of the
    capture, whose name the text shows.
    """
    limits = conditions.limits
    lines = [
        f"{path.name}: {verdict.bios} bios for {conditions.device}, kernel {conditions.kernel}",
        f"limits: {limits.max_sectors_bytes // KIB} KiB and {limits.max_segments} segments a request,"
        f" nomerges {limits.nomerges}, scheduler {conditions.scheduler}",
        "",
        f"decisions    {verdict.decisions_equal} of {verdict.decisions_total} equal",
        f"full flushes {verdict.full_flush_equal} of {verdict.full_flush_total} equal",
        f"requests     {verdict.requests_kernel} by the kernel, {verdict.requests_simulated} simulated",
    ]
    lines += [f"             {count} {text}" for count, text in _open_points(verdict) if count]
    if verdict.mismatches:
        rows = [(f"{path.name}:{m.line}", m.what, m.kernel, m.simulated) for m in verdict.mismatches]
        lines += ["", table(("where", "what", "kernel", "simulated"), rows, left_columns=4)]
    if eras:
        lines += [
            "",
            "Requests that the plugs of each era would issue for the same bios:",
            "",
            _era_table(conditions, eras),
        ]
    return "\n".join(lines)


def _open_points(verdict: Verdict) -> Sequence[tuple[int, str]]:
    after_loss = verdict.unjudged - verdict.inside_plug - verdict.request_unseen
    return (
        (verdict.events_lost, "events were lost; for each task the comparison continues at its next plug"),
        (verdict.uncounted_losses, "more losses are marked without a number of events"),
        (after_loss, "decisions are not compared: after lost events the plug or the queue is unknown"),
        (
            verdict.inside_plug,
            "decisions are not compared: the capture begins inside a plug or shows only a part of one",
        ),
        (
            verdict.request_unseen,
            "decisions are not compared: the capture does not show the beginning of the request",
        ),
        (
            verdict.without_sectors,
            "events are skipped: their requests have no sectors (packets, flushes)",
        ),
        (verdict.full_flush_unknown, "flushes are not compared: each may also be a flush before a sleep"),
        (
            verdict.by_segments,
            "merges show that a bio has fewer segments than pages; the capture does not record segments",
        ),
        (
            verdict.in_dispatch,
            "bios arrived for a request in dispatch, as its issue directly after them shows",
        ),
    )


def _era_table(conditions: Conditions, eras: Mapping[str, Issued]) -> str:
    classes = sorted({_class_of(length) for outcome in eras.values() for length in outcome.lengths})
    rows = []
    for name, outcome in eras.items():
        mark = {conditions.era: " = this capture's", conditions.what_if_era: " <- --kernel"}.get(name, "")
        histogram = Counter({_class_of(length): 0 for length in outcome.lengths})
        for length, count in outcome.lengths.items():
            histogram[_class_of(length)] += count
        sectors = sum(length * count for length, count in outcome.lengths.items())
        mean = sectors * SECTOR_BYTES / KIB / max(outcome.requests, 1)  # a cut capture may have no requests
        counts = [str(histogram[size]) if histogram[size] else "." for size in classes]
        rows.append((f"{name}{mark}", str(outcome.requests), f"{mean:.1f}", *counts))
    return table(("plug rules of", "requests", "mean KiB", *(_label(size) for size in classes)), rows)


def _class_of(sectors: int) -> int:
    """Return the index in `CLASSES` of a request of *sectors* sectors; ``len(CLASSES)`` if it is larger."""
    return sum(sectors * SECTOR_BYTES > bound * KIB for bound in CLASSES)


def _label(place: int) -> str:
    return f"<={CLASSES[place]}K" if place < len(CLASSES) else f">{CLASSES[-1]}K"


def _histogram(lengths: Counter[int]) -> dict[str, int]:
    histogram: Counter[int] = Counter()
    for length, count in lengths.items():
        histogram[_class_of(length)] += count
    return {_label(place): histogram[place] for place in sorted(histogram)}


def draw_eras(path: Path, title: str, conditions: Conditions, eras: Mapping[str, Issued]) -> None:
    """Draw the number and the sizes of the requests of each of *eras*, and write the picture to *path* (PNG).

    *title* stands above the picture.  *eras* must not be empty; see `figure`.  An existing file is replaced.

    Raises:
        BadInput: *path* cannot be written.
    """
    replace_whole(path, partial(save_png, figure(title, conditions, eras)))


def figure(title: str, conditions: Conditions, eras: Mapping[str, Issued]) -> Figure:
    """Return the picture of a what-if, with *title* above it; `draw_eras` writes it.

    The upper panel has the number of requests that each era would have issued.  The lower panel has the MiB
    by request size, for the capture's era and the era that was asked for, as *conditions* name them.  *eras*
    contains both.
    """
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(PICTURE_WIDTH, 5.4), layout="constrained")
    head(drawing, title)
    counts, sizes = drawing.subplots(2, 1, height_ratios=(1.4, 1))
    own, what_if_era = conditions.era, conditions.what_if_era or conditions.era
    colours = {own: COLOURS[0], what_if_era: COLOURS[1]} if own != what_if_era else {own: COLOURS[0]}
    names = sorted(eras, key=[*PLUG_RULES, *eras].index)
    bars = counts.barh(
        names, [eras[name].requests for name in names], color=[colours.get(n, "0.8") for n in names]
    )
    counts.bar_label(bars, fmt=lambda value: figure_text(value, 0), padding=3, fontsize=8)
    counts.margins(x=0.2)
    counts.invert_yaxis()
    counts.set(xlabel="requests issued", ylabel="plug rules of Linux")
    counts.xaxis.set_major_formatter(lambda value, _: figure_text(value, 0))
    classes = sorted({_class_of(length) for name in colours for length in eras[name].lengths})
    width = 0.8 / len(colours)
    for offset, (name, colour) in enumerate(colours.items()):
        mebibytes: Counter[int] = Counter()
        for length, count in eras[name].lengths.items():
            mebibytes[_class_of(length)] += length * count * SECTOR_BYTES
        places = [classes.index(place) + (offset - (len(colours) - 1) / 2) * width for place in classes]
        label = f"{name}, this capture's" if name == own else name
        sizes.bar(places, [mebibytes[place] / 2**20 for place in classes], width, color=colour, label=label)
    sizes.set_xticks(
        range(len(classes)), [_label(place).replace("<=", "≤ ") for place in classes], fontsize=8
    )
    sizes.set(xlabel="request size, bytes", ylabel="MiB written in such requests")
    sizes.margins(y=0.3)  # room for the legend above the bars
    sizes.legend(frameon=False, fontsize=8.5, ncols=2, loc="upper right")
    for panel in (counts, sizes):
        panel.spines[["top", "right"]].set_visible(False)
    counts.grid(True, axis="x", color="0.9")
    sizes.grid(True, axis="y", color="0.9")
    for panel in (counts, sizes):
        panel.set_axisbelow(True)
        panel.tick_params(labelsize=8)
    return drawing
