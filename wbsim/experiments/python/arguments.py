"""The checks of arguments from Python: wrong arguments raise one `BadInput`, as on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, wraps
from inspect import signature
from pathlib import Path
from typing import ParamSpec, TypeVar

from pydantic import ConfigDict, ValidationError, validate_call

from wbsim.experiments.config.problems import BadInput, Problem, bad, unknown_key

_MOST = 1 << 63
GivenT = ParamSpec("GivenT")
ResultT = TypeVar("ResultT")


def checked(function: Callable[GivenT, ResultT]) -> Callable[GivenT, ResultT]:
    """Return *function* with a check of its arguments against the annotations.

    Raises:
        BadInput: an argument has another type, or is out of its bounds.
    """

    @cache  # made by the first call, because an annotation may name a class that is defined later
    def validated() -> Callable[GivenT, ResultT]:
        return validate_call(config=ConfigDict(strict=True))(function)

    @wraps(function)
    def call(*given: GivenT.args, **named: GivenT.kwargs) -> ResultT:
        names = list(signature(function).parameters)
        for name, value in (*zip(names, given, strict=False), *named.items()):
            if (what := _never(value)) is not None:
                raise bad(f"{function.__name__}()", what, name)
        try:
            return validated()(*given, **named)
        except ValidationError as error:
            if error.title != function.__qualname__:
                raise
            found = {_name(of["loc"][0], names): of for of in error.errors()}
            raise BadInput(
                [Problem(f"{function.__name__}()", name, f"is {_short(of['input'])}; {of['msg'].lower()}")
                 for name, of in found.items()]
            ) from None  # fmt: skip

    return call


def is_there(path: Path) -> bool:
    """Return whether *path* exists; False if the system refuses the path, for example a too long name."""
    try:
        return path.exists()
    except OSError:
        return False


def _never(value: object) -> str | None:
    """Return an error message if *value*, or an item of it, is valid for no parameter; otherwise None."""
    if isinstance(value, int):
        return (
            None if -_MOST <= value < _MOST else "is a whole number of more than 64 bits; give a smaller one"
        )
    if isinstance(value, str | Path):
        return f"is {_short(str(value))}; give a text without a NUL character" if "\0" in str(value) else None
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple):
        return next((what for of in value if (what := _never(of)) is not None), None)
    return None


def listed(key: str, values: object) -> list[object]:
    """Return *values*, any iterable with the values of *key*, as a list.

    Raises:
        BadInput: *values* is not an iterable, or is a text or a mapping.
    """
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        raise bad("vary()", f"is {_short(values)}; a list of values was expected", key)
    return list(values)


def known(what: str, name: object, names: Iterable[str]) -> str:
    """Return *name* if it is one of *names*.

    Raises:
        BadInput: *name* is not one of *names*.
    """
    there = list(names)
    if isinstance(name, str) and name in there:
        return name
    raise bad(what, unknown_key(str(name), there), _short(name))


def _name(at: object, names: list[str]) -> str:
    """Return the name of a parameter; *at*: its place in *names*, or its name."""
    return names[at] if isinstance(at, int) and at < len(names) else str(at)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
