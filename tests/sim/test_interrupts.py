"""Interrupts from the keyboard."""

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
    """Who runs the tests in the background has interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


BOTH = pytest.mark.parametrize("primitives", [LIGHT, pytest.param(STOCK, marks=pytest.mark.stock)])


@BOTH
def test_an_interrupt_comes_before_all_else_that_is_due(primitives: Primitives) -> None:
    """What is being done is done to its end, and nothing after it."""
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


def test_the_handler_is_put_back_after_a_quiet_run() -> None:
    """And stands while it runs."""
    with between_events(LIGHT.environment()):
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_who_handles_interrupts_goes_on_doing_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler of one's own stays, and no thread but the main one sets any."""
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


def test_a_machine_s_run_is_interrupted_between_events() -> None:
    """What was being done when the interrupt came is done."""
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


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """As nohup wants it; the other one ends us, and both are put back."""
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
def test_what_came_is_known_whatever_was_made_of_it(number: int, raised: type[BaseException]) -> None:
    """A library may swallow the exception; the next body begins with nothing."""
    before = signal.getsignal(number)
    for _ in range(2):
        with ended_by_signals() as came:
            assert came == []
            with ended_by_signals(), pytest.raises(raised):
                signal.raise_signal(number)
            assert came == [number]
        assert signal.getsignal(number) is before


class _Passes:
    """Python passes over what its destructor raises."""

    def __init__(self, raises: Callable[[], object]) -> None:
        self._raises = raises

    def __del__(self) -> None:
        self._raises()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_is_passed_over_comes_again(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The earlier hook gets other exceptions, unless a signal came before them."""
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda of: told.append(of.exc_type))
    alarm = signal.getsignal(signal.SIGALRM)
    with ended_by_signals() as came:
        _Passes(lambda: 1 // 0)
        _Passes(lambda: signal.raise_signal(number))
        _Passes(lambda: [].pop())  # an object that the signal left half made
        with pytest.raises((KeyboardInterrupt, Ended)):
            time.sleep(10)
    assert told == [ZeroDivisionError]
    assert set(came) == {number}
    assert signal.getsignal(signal.SIGALRM) is alarm
    _Passes(lambda: 1 // 0)
    assert len(told) == 2


def test_what_is_held_back_is_heard_afterwards() -> None:
    """Not in the body, and in a process that begins there once that says so."""
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
