"""The division of a sweep's runs into panels and lines, so that a band covers only replications.

A picture shows some of the swept keys: on an axis, as lines, or as panels.  Runs that are equal in all shown
keys must differ only in their replication.  A key that follows from the shown keys, as in a zip or in a Latin
hypercube, needs no panel.

A frame is the tidy dataset (`results.dataset.tidy`): a row for each run, a column for each key and figure.
The columns of figures may also have names without units, as pictures need them (`pictures.plots.frame_of`).
A base unit is "ns", "B" or "B/s"; a number without one has the unit "".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from wbsim.experiments.config.problems import bad, list_names
from wbsim.experiments.pictures.axes import COLOURS, are_numbers, short
from wbsim.experiments.results.dataset import number_of, unit_of
from wbsim.experiments.results.figures import COLUMNS

if TYPE_CHECKING:
    import pandas as pd

MOST_PANELS: Final = 6
"""The largest number of panels side by side that can be read."""
MOST_LINES: Final = len(COLOURS)
"""The largest number of lines in a panel that differ in colour."""
_MEASURED: Final = {"replication", "seed", *COLUMNS, *COLUMNS.values()}


def label_text(value: object, unit: str = "") -> str:
    """Return *value* of the base *unit* as the text of a label; a text and a truth value stay as they are.

    >>> label_text(4096, "B"), label_text("xfs"), label_text(True)
    ('4 KiB', 'xfs', 'True')
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return short(value, unit)
    return str(value)


def names_of(frame: pd.DataFrame, key: str, values: Iterable[object]) -> list[str]:
    """Return the *values* of the setting *key* of *frame*, in base units, as the texts of labels."""
    return [label_text(value, unit_of(frame, key)) for value in values]


def ordered(values: Iterable[object]) -> list[Any]:
    """Return each of *values* once: numbers by size, texts in the order in which they first occur.

    With a text or a truth value among *values*, numbers also stay in this order.

    >>> ordered([8, 2, 8]), ordered(["b", "a", "b"])
    ([2, 8], ['b', 'a'])
    """
    entries = list(dict.fromkeys(values))
    return sorted(entries) if are_numbers(entries) else entries


def settings_of(frame: pd.DataFrame) -> list[str]:
    """Return the columns of *frame* that are settings: the variant and keys; no figure, replication, seed."""
    return [key for key in map(str, frame) if key not in _MEASURED]


def differing(frame: pd.DataFrame, keys: Sequence[str], shown_keys: Sequence[str]) -> list[str]:
    """Return the *keys* that distinguish runs which are equal in all *shown_keys*.

    All are columns of *frame*, and there is at least one of *shown_keys*.  A key that follows from earlier
    keys is left out.
    """
    dividers: list[str] = []
    for key in keys:
        alike = list(dict.fromkeys([*shown_keys, *dividers]))
        if key not in alike and _several(frame, key, alike):
            dividers.append(key)
    return dividers


def _several(frame: pd.DataFrame, key: str, alike: Sequence[str]) -> bool:
    """Return whether *key* differs between two runs that are equal in all keys *alike*."""
    return bool((frame.groupby(list(alike))[key].nunique() > 1).any())


def usual_lines(frame: pd.DataFrame, x: str) -> list[str]:
    """Return the keys of the usual lines: the variant, and the settings that differ between runs at one *x*.

    *x*: the column on the horizontal axis; a picture over the variant has no line for it.  If there are more
    than `MOST_LINES` lines, the first settings are left out and become panels, up to `MOST_PANELS` panels.
    If no division keeps both bounds, all settings stay lines.
    """
    variant = ["variant"] if x != "variant" else []
    keys = differing(frame, settings_of(frame), [x, *variant])
    for aside in range(len(keys)):
        lines = [*variant, *keys[aside:]]
        panels = frame.groupby(keys[:aside]).ngroups if aside else 1
        if frame.groupby(lines).ngroups <= MOST_LINES and panels <= MOST_PANELS:
            return lines
    return [*variant, *keys]


def telling_keys(frame: pd.DataFrame, keys: Sequence[str]) -> list[str]:
    """Return the *keys* that label a line: those with several values in *frame*.

    Without any, return "variant" if it is one of *keys*, or else no key.
    """
    return [key for key in keys if frame[key].nunique() > 1] or [key for key in keys if key == "variant"]


def lines_of(frame: pd.DataFrame, keys: Sequence[str]) -> list[tuple[str, pd.DataFrame]]:
    """Return a label and the runs of each line: one for each combination of values of *keys* in *frame*.

    Without *keys* there is one line of all runs, without label.
    """
    if not keys:
        return [("", frame)]
    units = [unit_of(frame, key) for key in keys]
    lines = frame.groupby(list(keys), sort=False)
    return [(", ".join(map(label_text, values, units)), runs) for values, runs in lines]


def panels_of(frame: pd.DataFrame, keys: Sequence[str]) -> list[tuple[str, pd.DataFrame]]:
    """Return a title and the runs of each panel: one for each combination of values of *keys*.

    The panels are in the order that `ordered` gives the values.  Without *keys* there is one panel of all
    runs, without title.

    Raises:
        BadInput: there would be more than `MOST_PANELS` panels.
    """
    if not keys:
        return [("", frame)]
    order = [ordered(frame[key]).index for key in keys]
    divided = sorted(
        frame.groupby(list(keys), sort=False),
        key=lambda group: [place(value) for place, value in zip(order, group[0], strict=True)],
    )
    if len(divided) > MOST_PANELS:
        differences = "; ".join(
            f"{key} ({list_names(names_of(frame, key, ordered(frame[key])))})" for key in keys
        )
        raise bad(
            "plot",
            f"runs at one point of the picture differ in {differences}: {len(divided)} panels, and at most"
            f" {MOST_PANELS} are readable; give --by KEY or --where KEY=VALUE (in Python: by, where)",
        )
    units = [unit_of(frame, key) for key in keys]
    return [(", ".join(map(_titled, keys, values, units)), runs) for values, runs in divided]


def _titled(key: str, value: object, unit: str) -> str:
    return str(value) if key == "variant" else f"{key} = {label_text(value, unit)}"


def select(
    frame: pd.DataFrame, where: Mapping[str, Sequence[object]], place: str = "--where"
) -> pd.DataFrame:
    """Return the rows of *frame* that have one of the given values in each column that *where* names.

    *where* names columns of *frame*, each with at least one value.  A value may be written as a user would,
    such as "4 GiB" for a number of bytes.

    Raises:
        BadInput: no run that is left has one of the values; the message names *place*.
    """
    for key, texts in where.items():
        matches = [[_means(text, value) for value in frame[key]] for text in texts]
        for text, hits in zip(texts, matches, strict=True):
            if not any(hits):
                choices = list_names(names_of(frame, key, ordered(frame[key])))
                raise bad(place, f"no remaining run has {label_text(text)}; use one of {choices}", key)
        frame = frame[[any(hits) for hits in zip(*matches, strict=True)]]
    return frame


def _means(text: object, value: object) -> bool:
    """Return whether *text*, as a user writes it, means the *value* of a run."""
    if text == value or str(text) in (str(value), label_text(value)):
        return True
    return are_numbers([value]) and _number(text) == value


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return number_of(text)


def where_of(options: Sequence[str]) -> dict[str, list[str]]:
    """Return the values by key of *options*, each of which has the form ``KEY=VALUE``; a key may come again.

    >>> where_of(["variant=base", "variant=patched"])
    {'variant': ['base', 'patched']}

    Raises:
        BadInput: an option has another form.
    """
    where: dict[str, list[str]] = {}
    for option in options:
        key, _, value = option.partition("=")
        if not (key.strip() and value):
            raise bad("--where", f"is {option!r}; give KEY=VALUE, such as variant=base")
        where.setdefault(key.strip(), []).append(value)
    return where


def narrowed(title: str, where: Mapping[str, Sequence[object]]) -> str:
    """Return *title* with the choices of *where* in parentheses, if there are any.

    >>> narrowed("fsync", {"files": [100, 200]})
    'fsync (files = 100 or 200)'
    """
    choices = ", ".join(f"{key} = {' or '.join(map(label_text, values))}" for key, values in where.items())
    return f"{title} ({choices})" if choices else title
