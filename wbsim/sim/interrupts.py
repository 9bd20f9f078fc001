"""Signals that end us: they become exceptions, which come between two events of a simulation."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any, Final, NoReturn

from wbsim.sim.simpy_bridge import Clock

_BEFORE_ALL: Final = -(1 << 40)
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
_HELD: Final = (signal.SIGINT, *_ENDING)
_AGAIN_S: Final = 1e-3
"""After which a signal comes once more that was passed over: what passed over it is done by then."""


class Ended(BaseException):
    """The signal with this number asks us to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


_came: Final[list[int]] = []


def _end(number: int, frame: FrameType | None) -> NoReturn:
    _came.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else Ended(number)


def _passed_over(
    told: Callable[[sys.UnraisableHookArgs], object], unraisable: sys.UnraisableHookArgs
) -> None:
    """Raise the signal again a little later if Python passes over its exception.

    Python passes over exceptions in a destructor and in the callback of a weak reference.  Any other
    exception goes to *told*, unless a signal came before: objects that it left half made may fail.
    """
    match unraisable.exc_value:
        case KeyboardInterrupt():
            number: int = signal.SIGINT
        case Ended() as ended:
            number = ended.number
        case _:
            if not _came:
                told(unraisable)
            return

    def again(alarm: int, frame: FrameType | None) -> None:
        signal.signal(alarm, before or signal.SIG_DFL)
        signal.raise_signal(number)

    before = signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


@contextmanager
def ended_by_signals() -> Iterator[list[int]]:
    """In the body, SIGTERM and SIGHUP raise `Ended`, so that what was begun is tidied up; but for a signal
    that is ignored (nohup), and outside the main thread.  None of them is lost (`_passed_over`).

    What it gives holds the numbers of those that came, and of SIGINT: a library may have made another
    exception of the one that was raised (pydantic does where a class is made).
    """
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    before = {number: signal.getsignal(number) for number in _HELD}
    if _end not in before.values():
        _came.clear()
    for number in _HELD:
        if before[number] in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)
    told, sys.unraisablehook = sys.unraisablehook, partial(_passed_over, sys.unraisablehook)
    try:
        yield _came
    finally:
        sys.unraisablehook = told
        for number, handler in before.items():
            with suppress(TypeError):  # it was not set from Python
                signal.signal(number, handler)


@contextmanager
def signals_held() -> Iterator[None]:
    """In the body, nothing of what ends us is heard; it is after that.  So it does not come where Python
    passes over exceptions (at a fork).  A process that begins in the body calls `hear_signals`.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def hear_signals() -> None:
    """Hear again what `signals_held` held back."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)


@contextmanager
def between_events(env: Clock) -> Iterator[None]:
    """In the body, SIGINT becomes an event of *env* that is due at once and raises `KeyboardInterrupt`; so do
    the signals of `ended_by_signals`.

    So nothing is left half done.  And no exception comes in the middle of compiled arithmetic, which would
    take it for a lack of memory and abort.  Outside the main thread, or if the program has a handler of its
    own, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING)}
    ours = {number: of for number, of in handlers.items() if of in (signal.default_int_handler, _end)}

    def soon(number: int, frame: FrameType | None) -> None:
        env.call_at(env.now, _BEFORE_ALL, lambda: ours[number](number, None))

    for number in ours:
        signal.signal(number, soon)
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
