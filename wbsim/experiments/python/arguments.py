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


def check_arguments(function: Callable[GivenT, ResultT]) -> Callable[GivenT, ResultT]:
    """Return *function* with a check of its arguments against the annotations; a decorator of the interface.

    The call raises these errors, before *function* runs.

    Raises:
        BadInput: an argument has another type, is out of its bounds, or has more than 64 bits or a NUL.
    """

    @cache  # made by the first call, because an annotation may name a class that is defined later
    def validated() -> Callable[GivenT, ResultT]:
        return validate_call(config=ConfigDict(strict=True))(function)

    @wraps(function)
    def call(*arguments: GivenT.args, **keywords: GivenT.kwargs) -> ResultT:
        names = list(signature(function).parameters)
        for name, value in (*zip(names, arguments, strict=False), *keywords.items()):
            if (message := _never(value)) is not None:
                raise bad(f"{function.__name__}()", message, name)
        try:
            return validated()(*arguments, **keywords)
        except ValidationError as error:
            if error.title != function.__qualname__:
                raise
            details = {_name(detail["loc"][0], names): detail for detail in error.errors()}
            raise BadInput(
                [Problem(f"{function.__name__}()", name,
                         f"is {_short(detail['input'])}; {detail['msg'].lower()}")
                 for name, detail in details.items()]
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
        return next((message for item in value if (message := _never(item)) is not None), None)
    return None


def list_of(key: str, values: object) -> list[object]:
    """Return *values*, any iterable with the values of *key*, as a list, for `Study.vary`.

    Raises:
        BadInput: *values* is not an iterable, or is a text or a mapping.
    """
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        raise bad("vary()", f"is {_short(values)}; a list of values was expected", key)
    return list(values)


def check_name(place: str, name: object, names: Iterable[str]) -> str:
    """Return *name* if it is one of *names*, which may be any iterable.

    Raises:
        BadInput: *name* is not one of *names*; the error has *place*, such as "plot()", and the nearest name.
    """
    choices = list(names)
    if isinstance(name, str) and name in choices:
        return name
    raise bad(place, unknown_key(str(name), choices), _short(name))


def _name(position: object, names: list[str]) -> str:
    """Return the name of a parameter; *position*: its place in *names*, or its name."""
    return names[position] if isinstance(position, int) and position < len(names) else str(position)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
