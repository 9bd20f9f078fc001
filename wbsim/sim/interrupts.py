"""Signals that end this process: they become exceptions between two events of a simulation."""

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
"""The delay (s) after which a signal is raised again if Python has ignored its exception.

By then the destructor or callback in which Python ignored it has ended.
"""


class Ended(BaseException):
    """The signal *number* asks this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


_arrivals: Final[list[int]] = []


def _end(number: int, frame: FrameType | None) -> NoReturn:
    _arrivals.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else Ended(number)


def _passed_over(
    hook: Callable[[sys.UnraisableHookArgs], object], unraisable: sys.UnraisableHookArgs
) -> None:
    """Raise the signal again a little later if Python ignores its exception.

    Python ignores exceptions in a destructor and in the callback of a weak reference.  Any other exception
    goes to *hook*, unless a signal came before, because objects that the signal left half made may fail.
    """
    match unraisable.exc_value:
        case KeyboardInterrupt():
            number: int = signal.SIGINT
        case Ended() as ended:
            number = ended.number
        case _:
            if not _arrivals:
                hook(unraisable)
            return

    def again(alarm: int, frame: FrameType | None) -> None:
        signal.signal(alarm, old_handler or signal.SIG_DFL)
        signal.raise_signal(number)

    old_handler = signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


@contextmanager
def ended_by_signals() -> Iterator[list[int]]:
    """Let SIGTERM and SIGHUP raise `Ended` in the body, so that the program can clean up.

    SIGINT raises `KeyboardInterrupt`, as usual.  A signal that is ignored (nohup) stays ignored, and a
    handler that the program has set stays.  The old handlers come back after the body.  If Python ignores
    the exception, as in a destructor, the signal is raised again a little later.

    The context value is a list of the numbers of the signals that came, SIGINT included, which grows
    in the body.  A library may replace the exception of a signal, as pydantic does where a class is made; the
    list has that signal, too.
    Outside the main thread nothing changes, and the list stays empty.
    """
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    handlers = {number: signal.getsignal(number) for number in _HELD}
    if _end not in handlers.values():
        _arrivals.clear()
    for number in _HELD:
        if handlers[number] in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)
    hook, sys.unraisablehook = sys.unraisablehook, partial(_passed_over, sys.unraisablehook)
    try:
        yield _arrivals
    finally:
        sys.unraisablehook = hook
        for number, handler in handlers.items():
            with suppress(TypeError):  # the handler was not set from Python
                signal.signal(number, handler)


@contextmanager
def signals_held() -> Iterator[None]:
    """Block SIGINT, SIGTERM and SIGHUP in the body; they arrive after the body.

    So no signal comes where Python ignores exceptions (at a fork).  A process that begins in the body calls
    `hear_signals`.
    """
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


def hear_signals() -> None:
    """Unblock the signals that `signals_held` blocked, in a worker process that inherited the block."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)


@contextmanager
def between_events(env: Clock) -> Iterator[None]:
    """Turn SIGINT in the body into an event of *env* that is due at once and raises `KeyboardInterrupt`.

    Inside `ended_by_signals`, SIGTERM and SIGHUP become such events, too, and raise `Ended`.  So no event is
    left half done.  No exception comes in the middle of compiled arithmetic, which would take the exception
    for a lack of memory and abort.  Outside the main thread nothing changes.  A signal for which the program
    has set another handler is not changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING)}
    own_handlers = {
        number: handler
        for number, handler in handlers.items()
        if handler in (signal.default_int_handler, _end)
    }

    def soon(number: int, frame: FrameType | None) -> None:
        env.call_at(env.now, _BEFORE_ALL, lambda: own_handlers[number](number, None))

    for number in own_handlers:
        signal.signal(number, soon)
    try:
        yield
    finally:
        for number, handler in own_handlers.items():
            signal.signal(number, handler)
