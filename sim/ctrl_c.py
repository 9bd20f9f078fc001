"""An interrupt from the keyboard comes between two events."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

from wbsim.sim.beside import Clock

_BEFORE_ALL: Final = -(1 << 40)


@contextmanager
def between_events(env: Clock) -> Iterator[None]:
    """In the body, SIGINT becomes an event of *env* that is due at once and raises `KeyboardInterrupt`.

    So nothing is left half done.  And no exception comes in the middle of compiled arithmetic, which would
    take it for a lack of memory and abort.  Outside the main thread, or if the program has a SIGINT handler
    of its own, nothing changes.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: env.call_at(env.now, _BEFORE_ALL, _interrupt))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _interrupt() -> NoReturn:
    raise KeyboardInterrupt
