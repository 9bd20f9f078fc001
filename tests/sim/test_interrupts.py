"""Interrupts from the keyboard, and other signals that end a run."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.harness import small_scenario
from wbsim.models.machine import LIGHT, STOCK, Primitives, build
from wbsim.sim.engine import Steps
from wbsim.sim.interrupts import Ended, between_events, ended_by_signals, hear_signals, signals_held

pytestmark = pytest.mark.usefixtures("python_s_own_handler")


@pytest.fixture
def python_s_own_handler() -> Iterator[None]:
    """Set Python's handler of SIGINT: a shell ignores interrupts for tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


BOTH = pytest.mark.parametrize("primitives", [LIGHT, pytest.param(STOCK, marks=pytest.mark.stock)])


@BOTH
def test_interrupt_ends_the_run_after_the_current_event(primitives: Primitives) -> None:
    """The current event completes, and no event follows it, even at the same instant."""
    env = primitives.environment()
    done: list[str] = []

    def steps() -> Steps:
        yield 5
        signal.raise_signal(signal.SIGINT)
        done.append("this")
        yield 0
        done.append("the next")

    env.start(env.task("one"), steps())
    env.call_at(5, -10, lambda: done.append("earlier"))
    env.call_at(5, 1_000, lambda: done.append("later"))
    with between_events(env), pytest.raises(KeyboardInterrupt):
        env.run()
    assert done == ["earlier", "this"]
    assert env.now == 5
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handler_is_restored_after_a_run_without_interrupt() -> None:
    """The handler of SIGINT is another one during a run, and is restored after it."""
    with between_events(LIGHT.environment()):
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_user_supplied_interrupt_handler_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user-supplied handler stays, and only the main thread sets a handler."""
    own: Any = lambda *_: None  # noqa: E731
    before = signal.signal(signal.SIGINT, own)
    try:
        with between_events(LIGHT.environment()):
            assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
    seen: list[Any] = []

    def elsewhere() -> None:
        with between_events(LIGHT.environment()):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_run_of_a_machine_is_interrupted_between_events() -> None:
    """The event during which the interrupt comes is completed."""
    machine, done = build(small_scenario(), 1), []

    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append(machine.env.now)

    machine.env.call_at(5_000, 0, interrupt)
    with pytest.raises(KeyboardInterrupt):
        machine.run()
    assert done == [5_000] == [machine.env.now]


@ended_by_signals()
def _hang_up_and_terminate() -> None:
    signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGTERM)


def test_ignored_signal_stays_ignored() -> None:
    """An ignored SIGHUP (nohup) stays ignored and SIGTERM raises `Ended`; both handlers are restored."""
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with pytest.raises(Ended) as ended:
            _hang_up_and_terminate()
        assert ended.value.number == signal.SIGTERM
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "raised"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Ended), (signal.SIGHUP, Ended)],
)
def test_signals_are_recorded_although_a_library_replaces_the_exception(
    number: int, raised: type[BaseException]
) -> None:
    """A signal is recorded even if a library swallows its exception; the next body has an empty record."""
    before = signal.getsignal(number)
    for _ in range(2):
        with ended_by_signals() as came:
            assert came == []
            with ended_by_signals(), pytest.raises(raised):
                signal.raise_signal(number)
            assert came == [number]
        assert signal.getsignal(number) is before


class _Passes:
    """An object whose destructor raises an exception, which Python ignores."""

    def __init__(self, raises: Callable[[], object]) -> None:
        self._raises = raises

    def __del__(self) -> None:
        self._raises()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_whose_exception_is_ignored_comes_again(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The earlier unraisablehook gets other ignored exceptions, unless a signal came before them."""
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda of: told.append(of.exc_type))
    alarm = signal.getsignal(signal.SIGALRM)
    with ended_by_signals() as came:
        _Passes(lambda: 1 // 0)
        _Passes(lambda: signal.raise_signal(number))
        _Passes(lambda: [].pop())  # an object that the signal left incomplete
        with pytest.raises((KeyboardInterrupt, Ended)):
            time.sleep(10)
    assert told == [ZeroDivisionError]
    assert set(came) == {number}
    assert signal.getsignal(signal.SIGALRM) is alarm
    _Passes(lambda: 1 // 0)
    assert len(told) == 2


def test_held_signals_arrive_after_the_body() -> None:
    """A signal arrives after the body of `signals_held`, or in the body after `hear_signals`."""
    seen: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append("heard"))
    try:
        with signals_held():
            signal.raise_signal(signal.SIGTERM)
            seen.append("the body ended")
        assert seen == ["the body ended", "heard"]
        with signals_held():
            hear_signals()
            signal.raise_signal(signal.SIGTERM)
            seen.append("the body ended")
        assert seen[2:] == ["heard", "the body ended"]
        assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        signal.signal(signal.SIGTERM, before)
