"""A capture of a real kernel in Python: judge it by any plug rules, and compare other kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wbsim.experiments.captures.conditions import Options, conditions_of
from wbsim.experiments.captures.merge_decisions import steps_of
from wbsim.experiments.captures.reader import open_capture
from wbsim.experiments.captures.replay import replay
from wbsim.experiments.captures.report import figure
from wbsim.experiments.captures.verdict import Verdict
from wbsim.experiments.captures.what_if import Issued, what_if
from wbsim.experiments.python.arguments import check_arguments
from wbsim.models.block.spec import PlugRules
from wbsim.models.catalogue.kernels import PLUG_RULES as BY_RELEASE
from wbsim.sim.units import KIB, SECTOR_BYTES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class PlugRulesByKernel(Mapping[str, PlugRules]):
    """The rules of the plug of a task in several kernels, by the name of a Linux release.

    The keys are "2.6.39", "3.1" and so on, up to "6.17".  The rules say which requests of a plug a bio may
    join and how many requests a plug holds.  They also give the order in which a flush issues the requests.
    ``print(type(rules).__doc__)`` explains each field.  The sources are the kernels of these releases;
    ``wbsim params`` prints the source of each number.

    Example:
        >>> import wbsim
        >>> list(wbsim.PLUG_RULES)[:3]
        ['2.6.39', '3.1', '3.11']
        >>> rules = wbsim.PLUG_RULES["3.11"]
        >>> rules.max_requests  # the largest number of requests in a plug
        16
        >>> larger = rules.model_copy(update={"max_requests": 64})  # your own rules
    """

    def __init__(self, rules: Mapping[str, PlugRules]) -> None:
        self._rules = rules

    def __getitem__(self, release: str) -> PlugRules:
        """Return the rules of *release*, such as "3.11"; KeyError if *release* is not a key."""
        return self._rules[release]

    def __iter__(self) -> Iterator[str]:
        """Return an iterator over the keys, from the oldest release."""
        return iter(self._rules)

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._rules)

    def __repr__(self) -> str:
        return f"<the plug rules of Linux {', '.join(self)}>"


PLUG_RULES: Final = PlugRulesByKernel(BY_RELEASE)


class Capture:
    """A capture of the block layer of a real kernel, to be compared with the model.

    The file is opened at once and read again by each method, so it must stay in place.

    Args:
        path: The path of a capture that ``wbsim capture`` recorded or that blkparse printed, also compressed
            (.gz, .xz).
        device: The numbers of the device, such as ``"7,0"``.  Default: the only device of the capture.

    Raises:
        BadInput: *path* is not a capture, or its header lacks a limit of the queue.  Or the capture has
            several devices, and *device* names none of them.

    Example:
        >>> import wbsim
        >>> capture = wbsim.Capture("tests/captures/dd12.trace.xz")  # in a clone of wbsim
        >>> capture.judge().agrees
        True
    """

    @check_arguments
    def __init__(self, path: str | Path, device: str | None = None) -> None:
        self._capture = open_capture(Path(path))
        self._conditions = conditions_of(self._capture, Options(device, **dict.fromkeys(_OPTIONS)))

    def __repr__(self) -> str:
        return (
            f"<capture {self._capture.path.name} of Linux {self._conditions.kernel},"
            f" device {self._conditions.device}>"
        )

    @property
    def rules(self) -> PlugRules:
        """The plug rules of the kernel that made the capture.

        ``print(type(capture.rules).__doc__)`` explains each field.

        Example:
            >>> import wbsim
            >>> capture = wbsim.Capture("tests/captures/dd12.trace.xz")
            >>> capture.rules.max_requests
            32
            >>> mine = capture.rules.model_copy(update={"max_requests": 64})
        """
        return PLUG_RULES[self._conditions.era]

    def judge(self, rules: PlugRules | None = None) -> Verdict:
        """Compare every decision of the kernel with the decision under some rules of the plug.

        Args:
            rules: The rules.  Default: the `rules` of the kernel, under which a correct model makes the
                kernel's decisions.

        Returns:
            The `Verdict`: the numbers of equal decisions, and the first differences.

        Raises:
            BadInput: a line of the capture is damaged.

        Example:
            >>> import wbsim
            >>> capture = wbsim.Capture("tests/captures/deadline.trace.xz")
            >>> capture.judge().agrees
            True
            >>> capture.judge(capture.rules.model_copy(update={"max_requests": 1})).agrees
            False
        """
        conditions = self._conditions
        steps = steps_of(self._capture.events(), conditions.scheduler)
        return replay(steps, rules or self.rules, conditions.limits, conditions.scheduler, conditions.device)

    def what_if(self, rules: Mapping[str, PlugRules] | None = None) -> pd.DataFrame:
        """Return the requests that other rules of the plug would have made of the bios of the capture.

        Plugs begin and end as in the capture.  Merges outside the plugs are left out.

        Args:
            rules: The rules, each by a name of your choice.  Default: `wbsim.PLUG_RULES`.

        Returns:
            A frame with a row for each of *rules*, in their order, and three columns:

            * ``rules``: the name.
            * ``requests``: the number of requests that leave the plugs.
            * ``mean_size_kib``: the mean size of a request (KiB); 0 without requests.

        Raises:
            BadInput: a line of the capture is damaged.

        Example:
            >>> import wbsim
            >>> capture = wbsim.Capture("tests/captures/dd12.trace.xz")
            >>> mine = capture.rules.model_copy(update={"max_requests": 64})
            >>> frame = capture.what_if({"3.11": wbsim.PLUG_RULES["3.11"], "mine": mine})
            >>> list(frame["rules"])
            ['3.11', 'mine']
        """
        import pandas as pd

        rows = []
        for name, result in self._requests(PLUG_RULES if rules is None else rules).items():
            sectors = sum(length * count for length, count in result.lengths.items())
            mean_kib = sectors * SECTOR_BYTES / KIB / max(result.requests, 1)
            rows.append({"rules": name, "requests": result.requests, "mean_size_kib": mean_kib})
        return pd.DataFrame(rows)

    def draw(self, rules: Mapping[str, PlugRules] | None = None) -> Figure:
        """Return a picture of `what_if`.

        The upper panel has a bar for each of the rules: the number of requests.  The lower panel shows the
        amount (MiB) by the size of the request (KiB), under the rules of the captured kernel.

        Args:
            rules: The rules, each by a name of your choice; the rules of the captured kernel are added.
                Default: `wbsim.PLUG_RULES`.

        Returns:
            A figure of matplotlib.

        Raises:
            BadInput: a line of the capture is damaged.

        Example:
            >>> import wbsim
            >>> capture = wbsim.Capture("tests/captures/dd12.trace.xz")
            >>> capture.draw({"3.11": wbsim.PLUG_RULES["3.11"]}).savefig("requests.png")
        """
        all_rules = {self._conditions.era: self.rules, **(PLUG_RULES if rules is None else rules)}
        return figure(self._capture.path.name, self._conditions, self._requests(all_rules))

    def _requests(self, rules: Mapping[str, PlugRules]) -> dict[str, Issued]:
        """Return the requests of each of *rules*, by name."""
        conditions = self._conditions
        return what_if(
            steps_of(self._capture.events(), conditions.scheduler),
            rules,
            conditions.limits,
            conditions.device,
        )


_OPTIONS = ("kernel", "scheduler", "nomerges", "max_sectors_kb", "max_segments")
