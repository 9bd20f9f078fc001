"""Arguments from Python, checked as those of a command line are: one `BadInput` for what is wrong."""

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
    """*function*, which is called with arguments of its annotations' types only.

    Raises:
        BadInput: an argument is of another type, or out of its bounds.
    """

    @cache  # made when it is called first: an annotation may name a class that is not there yet
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
    """Whether there is anything at *path*, which may be one that nothing can be at."""
    try:
        return path.exists()
    except OSError:
        return False


def _never(value: object) -> str | None:
    """What is wrong with *value*, or with anything in it, whatever it is meant for."""
    if isinstance(value, int):
        return (
            None if -_MOST <= value < _MOST else "is a whole number of more than 64 bits; give a smaller one"
        )
    if isinstance(value, str | Path):
        return f"is {_short(str(value))}; no text has a NUL" if "\0" in str(value) else None
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple):
        return next((what for of in value if (what := _never(of)) is not None), None)
    return None


def listed(key: str, values: object) -> list[object]:
    """The *values* of *key*, whatever holds them.

    Raises:
        BadInput: nothing does.
    """
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        raise bad("vary()", f"is {_short(values)}; a list of values was expected", key)
    return list(values)


def known(what: str, name: object, names: Iterable[str]) -> str:
    """*name*, which is one of *names*.

    Raises:
        BadInput: it is none.
    """
    there = list(names)
    if isinstance(name, str) and name in there:
        return name
    raise bad(what, unknown_key(str(name), there), _short(name))


def _name(at: object, names: list[str]) -> str:
    """Of the parameter *at* a place, or of that name."""
    return names[at] if isinstance(at, int) and at < len(names) else str(at)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
