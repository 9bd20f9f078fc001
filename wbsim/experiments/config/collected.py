"""What is wrong with a configuration: collected while it is read, and told together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wbsim.experiments.config.places import Path, Places
from wbsim.experiments.config.problems import MOST_TOLD, BadInput, Problem, unknown_setting


class Collected:
    """The problems so far, with their *places*; those below ``scenario`` may stand in the *variant* that is
    being read.
    """

    def __init__(self, places: Places) -> None:
        self.places = places
        self.variant = ""
        self.problems: list[Problem] = []

    def tell(self) -> None:
        """What was found, if anything was.

        Raises:
            BadInput: all of it, each once.
        """
        if self.problems:
            raise BadInput(list(dict.fromkeys(self.problems)))

    @property
    def enough(self) -> bool:
        """Whether nobody reads what else is wrong."""
        return len(self.problems) > MOST_TOLD

    def asked(self, place: str, message: str) -> None:
        """What the command line asks for at *place* has this wrong."""
        self.problems.append(Problem(place, "", message))

    def wrong(self, path: Path, message: str, places: Places | None = None) -> None:
        """What stands at *path* has this wrong; a case has *places* of its own."""
        of_variant = [("variants", self.variant, *path[1:])] if path[0] == "scenario" else []
        place = (places or self.places).of(*of_variant, path)
        key = path[1:] if path[0] == "scenario" else path
        self.problems.append(Problem(place, ".".join(key), message))

    def refuse_unknown(self, table: Mapping[str, Any], known: Sequence[str], path: Path) -> None:
        """Keys of *table*, at *path*, that are none of those that are *known*."""
        for key in table:
            if key not in known and not self.enough:
                self.wrong((*path, key), unknown_setting(key, known))

    def table(self, path: Path, value: Any) -> Mapping[str, Any]:
        """*value*, which has to be a table; an empty one where it is none."""
        if isinstance(value, Mapping):
            return value
        self.wrong(path, f"is {value!r}; a table was expected")
        return {}

    def texts(self, path: Path, value: Any) -> tuple[str, ...]:
        """*value*, which has to be a list of texts; none where it is not."""
        if isinstance(value, list) and all(isinstance(text, str) for text in value):
            return tuple(value)
        self.wrong(path, f"is {value!r}; a list of texts was expected")
        return ()
