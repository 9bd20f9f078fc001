"""The pictures of documents: the drawing function of each, its data, and the texts that the PNG itself holds.

``python -m tests.documents.pictures [NAME ...]`` draws pictures from their data in docs/data, without a
simulation.  `tests.documents.makers` has the runs that the data come from.

A PNG has two comments: "Description", the texts of the picture, and "Source", a digest of its data.  A test
draws each picture from its data again and compares both.  So it sees a title, a label or a legend that the
drawing code or the configuration has changed since.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.category import StrCategoryFormatter
from PIL import Image

from tests.documents.places import CONFIGS, DATA, EXAMPLES, PICTURES_FOLDER, RATE_TITLE
from tests.experiments.outcomes import RUN
from wbsim.experiments.captures.report import figure as eras_figure
from wbsim.experiments.captures.what_if import Issued
from wbsim.experiments.config.experiment import load
from wbsim.experiments.pictures.axes import DOTS
from wbsim.experiments.pictures.disk import disk_picture
from wbsim.experiments.pictures.facets import usual_lines
from wbsim.experiments.pictures.latency import latency_picture
from wbsim.experiments.pictures.maps import heat_map
from wbsim.experiments.pictures.plots import line_picture
from wbsim.experiments.pictures.thread_times import thread_times_picture
from wbsim.experiments.pictures.time import over_time
from wbsim.experiments.pictures.tornado import tornado
from wbsim.experiments.results.dataset import with_setting
from wbsim.experiments.results.figures import COLUMNS
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.why.explain import Result, run_of
from wbsim.experiments.why.guesses import Guess
from wbsim.experiments.why.sensitivity import Effect, Sensitivity, title_of
from wbsim.models.catalogue.kernels import PLUG_RULES

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


class Picture(NamedTuple):
    """A picture of documents: the name of its data in docs/data, and the function that draws these data."""

    data: str
    draw: Callable[[Path], Figure]


def _title(config: str) -> str:
    return load(CONFIGS / config).title


def _frame(path: Path) -> pd.DataFrame:
    """Return the rows of the CSV file *path*, with figures instead of their columns with units."""
    return pd.read_csv(path, dtype={"variant": str}).rename(
        columns={of: name for name, of in COLUMNS.items()}
    )


def _lines(config: str, x: str, figures: tuple[str, ...], path: Path, held: int | None = None) -> Figure:
    """Draw the figures of a sweep, as `wbsim plot` does without options."""
    frame = _frame(path)
    return line_picture(frame, x, figures, usual_lines(frame, x), _title(config), held)


def _grid(config: str, x: str, y: str, figure: str, path: Path) -> Figure:
    """Draw a map, as ``wbsim plot --x --heat --y`` does; *y* is a swept size."""
    frame = _frame(path)
    return heat_map(with_setting(frame, y, list(frame[y])), x, y, figure, _title(config))


def _lives(path: Path) -> Figure:
    """Draw the times of threads, as `wbsim explain` does."""
    outcomes = [replace(RUN, **of) for of in json.loads(path.read_text())]
    return thread_times_picture(Result(_title("plug.toml"), (), [run_of(of) for of in outcomes]))


def _tornado(variant: str, path: Path) -> Figure:
    """Draw what `wbsim sensitivity --json` printed of *variant*."""
    document = json.loads(path.read_text())
    effects = [Effect(**{**of, "guess": Guess(**of["guess"])}) for of in document["effects"]]
    interval = None if document["interval"] is None else tuple(document["interval"])
    title = title_of(document["figure"], variant)
    return tornado(
        Sensitivity(title, document["figure"], document["value"], effects, interval, runs=0, refusal_count=0)
    )


def _fsync_outcome(calls: pd.DataFrame) -> Outcome:
    """Return a run whose only program made these *calls* of fsync, by latency."""
    bins = dict(zip(calls["latency_ns"], calls["calls"], strict=True))
    program: Any = SimpleNamespace(calls={"fsync": SimpleNamespace(bins_ns=bins)})
    return replace(RUN, programs={"db": program})


def _fsyncs(path: Path) -> Figure:
    """Draw the latencies of fsync, as `wbsim plot --latency` does; each value of dirty_bytes is a run."""
    key = "kernel.dirty.dirty_bytes"
    sizes = pd.read_csv(path).groupby("dirty_bytes", sort=False)
    outcomes = [_fsync_outcome(calls) for _, calls in sizes]
    frame = with_setting(
        pd.DataFrame({"variant": ["base"] * len(outcomes)}), key, [size for size, _ in sizes]
    )
    title = load(EXAMPLES / "fsync.toml").title
    return latency_picture(frame, outcomes, "fsync", [key], title)


def _fsync_drives(path: Path) -> Figure:
    """Draw the latencies of fsync of each drive, as `wbsim plot --latency` does."""
    by_drive = pd.read_csv(path).groupby("variant", sort=False)
    outcomes = [_fsync_outcome(drive) for _, drive in by_drive]
    frame = pd.DataFrame({"variant": [variant for variant, _ in by_drive]})
    return latency_picture(frame, outcomes, "fsync", ["variant"], _title("fsync_drives.toml"))


def _small_limits(path: Path) -> Figure:
    """Draw the rate of the streams, as `wbsim plot --y` does; the swept key is a size."""
    key, config = "kernel.dirty.dirty_bytes", "small_limits.toml"
    frame = _frame(path)
    frame = with_setting(frame, key, list(frame[key]))
    figures = ("on_disk_bandwidth", "on_disk_request_size")
    return line_picture(frame, key, figures, usual_lines(frame, key), _title(config), None)


def _allocsizes(path: Path) -> Figure:
    """Draw the extents and parity reads of RAID6, as `wbsim plot --y` does; the swept key is a size."""
    key, config = "mounts.data.allocsize", "raid_allocsize.toml"
    frame = _frame(path)
    frame = with_setting(frame, key, list(frame[key]))
    figures = ("extents_per_file", "read_iops", "on_disk_bandwidth")
    return line_picture(frame, key, figures, usual_lines(frame, key), _title(config), None)


def _eras(path: Path) -> Figure:
    """Draw the requests of each era, as `wbsim replay --kernel` does; an era without data has none."""
    document = json.loads(path.read_text())
    lengths = {
        name: Counter({int(length): count for length, count in of.items()})
        for name, of in document["lengths"].items()
    }
    eras = {name: Issued(lengths.get(name, Counter())) for name in [*PLUG_RULES, *lengths]}
    conditions: Any = SimpleNamespace(era=document["era"], what_if_era=document["asked"])
    return eras_figure(document["capture"], conditions, eras)


def _disk(variant: str, path: Path) -> Figure:
    """Draw the disk of *variant* of streams.toml, as `wbsim layout --out` does."""
    table = pd.read_csv(path)
    tables = [of[["page", "block", "pages"]].to_numpy(np.int64) for _, of in table.groupby("file")]
    files = [SimpleNamespace(extent_table=lambda of=of: of) for of in tables]
    filesystem: Any = SimpleNamespace(
        layouts=lambda: files, group_blocks=int(table["group_blocks"].iloc[0]), group_label="AG",
        extents_per_file=lambda: tuple(map(len, tables)),
    )  # fmt: skip
    return disk_picture(variant, filesystem)


def _time(title: Callable[[], str], path: Path) -> Figure:
    """Draw runs over time, as `wbsim plot` does with runs that are no sweep."""
    frame = pd.read_csv(path)
    columns = [str(column) for column in frame if column != "variant"]
    disks = [column.removesuffix(" ios") for column in columns if column.endswith(" ios")]
    outcomes = [
        replace(
            RUN, variant=str(variant), samples=(), disks=dict.fromkeys(disks, RUN.disks["vda"]),
            levels={column: tuple(of[column].tolist()) for column in columns},
        )
        for variant, of in frame.groupby("variant", sort=False)
    ]  # fmt: skip
    return over_time(title(), outcomes)


PICTURES: Final[Mapping[str, Picture]] = {
    "big-copy": Picture("big-copy.csv", partial(_time, partial(_title, "big_copy.toml"))),
    "controller": Picture(
        "controller.csv",
        partial(_lines, "controller.toml", "jobs", ("write_iops", "w_await")),
    ),
    "disk": Picture("disk.csv", partial(_disk, "eight")),
    "eras": Picture("eras.json", _eras),
    "extents": Picture(
        "extents.csv",
        partial(
            _lines, "extents_streams.toml", "streams", ("extents_per_file", "mean_extent", "file_bandwidth")
        ),
    ),
    "fsync": Picture("fsync.csv", _fsyncs),
    "fsync-drives": Picture("fsync-drives.csv", _fsync_drives),
    "garbage": Picture("garbage.csv", partial(_time, partial(_title, "garbage.toml"))),
    "j09-grid": Picture(
        "j09-grid.csv",
        partial(
            _grid, "pdflush_grid.toml", "workload.numjobs", "machine.memory.memory", "utilisation"
        ),
    ),
    "j09-rate": Picture("j09-rate.csv", partial(_time, lambda: RATE_TITLE)),
    "j09-time": Picture("j09-time.csv", partial(_time, partial(_title, "pdflush.toml"))),
    "lives": Picture("lives.json", _lives),
    "processors": Picture(
        "processors.csv",
        partial(
            _lines, "inode_processors.toml", "processors",
            ("file_rate", "system_processors", "waiting_processors"),
        ),
    ),
    "raid-allocsize": Picture("raid-allocsize.csv", _allocsizes),
    "raid-threads": Picture(
        "raid-threads.csv",
        partial(_lines, "raid_threads.toml", "threads", ("file_rate", "write_iops", "read_iops")),
    ),
    "small-limits": Picture("small-limits.csv", _small_limits),
    "stripe-cache": Picture(
        "stripe-cache.csv",
        partial(
            _lines, "stripe_cache.toml", "machine.arrays.md0.stripe_cache_size",
            ("file_bandwidth", "read_iops"),
        ),
    ),
    "threads": Picture(
        "threads.csv",
        partial(
            _lines, "plug_threads.toml", "threads", ("write_iops", "file_rate", "request_size"), held=16
        ),
    ),
    "tornado-p13": Picture("tornado-p13.json", partial(_tornado, "patched")),
    "tornado-w25": Picture("tornado-w25.json", partial(_tornado, "A-pm-p")),
}  # fmt: skip
"""All pictures of the documents (docs/NAME.png), by name."""


def texts_of(figure: Figure) -> str:
    """Return the texts of *figure*, one a line: titles, labels, ticks, legends and notes.

    Numbers at ticks and in cells are left out, because they say nothing that the data do not.
    """
    figure.draw_without_rendering()  # gives the ticks their texts
    return "\n".join(f"{kind}: {' / '.join(text.splitlines())}" for kind, text in _texts(figure) if text)


def _texts(figure: Figure) -> Iterator[tuple[str, str]]:
    """Yield the kind of each text of *figure*, and the text, which may be empty."""
    yield "title", figure.get_suptitle()
    for panel in figure.axes:
        yield from (("panel", panel.get_title(loc=place)) for place in ("left", "center", "right"))
        yield "x", panel.get_xlabel()
        yield "y", panel.get_ylabel()
        yield from (("x tick", text) for text in _words_at(panel.xaxis))
        yield from (("y tick", text) for text in _words_at(panel.yaxis))
        yield from (("note", note.get_text()) for note in panel.texts if _has_words(note.get_text()))
    for legend in [*figure.legends, *(panel.get_legend() for panel in figure.axes)]:
        yield from (("legend", text.get_text()) for text in (legend.get_texts() if legend else ()))


def _words_at(axis: Axis) -> list[str]:
    """Return the visible texts at the ticks of *axis* that are words, or names such as "3.11"."""
    texts = [label.get_text() for label in axis.get_ticklabels() if label.get_visible()]
    are_names = isinstance(axis.get_major_formatter(), StrCategoryFormatter)
    return [text for text in texts if are_names or _has_words(text)]


def _has_words(text: str) -> bool:
    """Return whether *text* has a letter, apart from the notation of powers of ten."""
    return any(letter.isalpha() for letter in text) and not text.startswith("$")


def comments_of(picture: Picture, figure: Figure) -> dict[str, str]:
    """Return the comments of the PNG of *picture*, which is drawn as *figure*."""
    digest = sha256((DATA / picture.data).read_bytes()).hexdigest()[:16]
    return {"Description": texts_of(figure), "Source": f"docs/data/{picture.data} {digest}"}


def read_comments(path: Path) -> dict[str, str]:
    """Return the comments "Description" and "Source" of the PNG *path*; "" for each that it lacks."""
    with Image.open(path) as image:
        texts = getattr(image, "text", {})
        return {name: str(texts.get(name, "")) for name in ("Description", "Source")}


def write_picture(name: str) -> None:
    """Draw the picture *name* from its data, and write docs/NAME.png."""
    picture = PICTURES[name]
    figure = picture.draw(DATA / picture.data)
    path = PICTURES_FOLDER / f"{name}.png"
    figure.savefig(path, format="png", dpi=DOTS, metadata=comments_of(picture, figure))


if __name__ == "__main__":
    for wanted in sys.argv[1:] or PICTURES:
        write_picture(wanted)
        print("drew", wanted)
