"""An error of a system call in a generator that the engine runs for another one: it reaches the caller."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wbsim.models.machine import LIGHT, STOCK, Primitives
from wbsim.sim.engine import PARK, CallError, Environment, Steps
from wbsim.sim.sync import HandOff

Log = list[tuple[int, str]]
on_engines = pytest.mark.parametrize("primitives", [LIGHT, pytest.param(STOCK, marks=pytest.mark.stock)])


class Stage:
    """A task and its log; an error comes after *ns*, at once if that is 0."""

    def __init__(self, primitives: Primitives) -> None:
        self.env: Environment = primitives.environment()
        self.lock = primitives.spin_lock(self.env, "lock", HandOff(30, 90, False, 2))
        self.log: Log = []
        self.ends: list[int] = []
        self.task = self.env.task("t")
        self.task.on_exit = lambda: self.ends.append(self.env.now)

    def note(self, what: str) -> None:
        """Add *what* to the log."""
        self.log.append((self.env.now, what))

    def fails(self, ns: int, message: str = "full") -> Steps:
        """Fail after *ns*."""
        if ns:
            yield ns
        raise CallError(message)
        yield 0

    def works(self, ns: int) -> Steps:
        """Work for *ns*."""
        yield ns
        self.note("worked")

    def passes(self, callee: Steps) -> Steps:
        """Run *callee* and do nothing about its errors."""
        yield callee
        self.note("never")

    def catches(self, callee: Steps, then: Callable[[], Steps] | None = None) -> Steps:
        """Run *callee*, note its error, and go on with *then*."""
        try:
            yield callee
            self.note("never")
        except CallError as error:
            self.note(str(error))
        if then is not None:
            yield then()
        self.note("caller ends")

    def run(self, body: Steps) -> Log:
        """Run *body* as the task."""
        self.env.start(self.task, body)
        self.env.run()
        return self.log


@on_engines
@pytest.mark.parametrize("ns", [0, 7])
def test_caller_catches_the_error_of_its_callee(primitives: Primitives, ns: int) -> None:
    """The caller is at its yield, and the task ends with it."""
    stage = Stage(primitives)
    assert stage.run(stage.catches(stage.fails(ns))) == [(ns, "full"), (ns, "caller ends")]
    assert stage.ends == [ns]
    assert stage.env.live_tasks == 0


@on_engines
@pytest.mark.parametrize("ns", [0, 7])
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_caller_of_the_caller_catches_the_error(primitives: Primitives, ns: int, depth: int) -> None:
    """The callers between do not go on."""
    stage = Stage(primitives)
    callee = stage.fails(ns)
    for _ in range(depth):
        callee = stage.passes(callee)
    assert stage.run(stage.catches(callee)) == [(ns, "full"), (ns, "caller ends")]
    assert stage.ends == [ns]


@on_engines
@pytest.mark.parametrize("ns", [0, 7])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_uncaught_error_ends_the_run(primitives: Primitives, ns: int, depth: int) -> None:
    """The task has not ended, and nothing after the call runs."""
    stage = Stage(primitives)
    body = stage.fails(ns)
    for _ in range(depth):
        body = stage.passes(body)
    with pytest.raises(CallError, match=r"^full$"):
        stage.run(body)
    assert stage.log == []
    assert stage.ends == []
    assert stage.env.now == ns


@on_engines
def test_caller_goes_on_waiting_after_the_error(primitives: Primitives) -> None:
    """It sleeps for a time, and then until it is woken."""
    stage = Stage(primitives)

    def then() -> Steps:
        yield 5
        stage.note("slept")
        yield PARK
        stage.note("woken")

    stage.env.call_at(20, 0, lambda: stage.env.wake(stage.task, 3))
    assert stage.run(stage.catches(stage.fails(7), then)) == [
        (7, "full"), (12, "slept"), (23, "woken"), (23, "caller ends"),
    ]  # fmt: skip


@on_engines
def test_wait_in_the_handler_may_be_of_any_kind(primitives: Primitives) -> None:
    """The first wait after the error is a time, PARK, a lock, a generator, or one that ends at once."""
    for kind, end_ns in (("time", 12), ("park", 23), ("lock", 60), ("generator", 18), ("nothing", 7)):
        stage = Stage(primitives)

        def no_work() -> Steps:
            return
            yield

        def body(stage: Stage = stage, kind: str = kind, no_work: Callable[[], Steps] = no_work) -> Steps:
            try:
                yield stage.fails(7)
            except CallError:
                yield {
                    "time": 5, "park": PARK, "generator": stage.works(11), "nothing": no_work(),
                    "lock": stage.lock.section(stage.task, 50, 3) if kind == "lock" else 0,
                }[kind]  # fmt: skip
            stage.note(kind)

        stage.env.call_at(
            20, 0, lambda stage=stage, kind=kind: kind == "park" and stage.env.wake(stage.task, 3)
        )
        assert stage.run(body())[-1] == (end_ns, kind)
        assert stage.ends == [end_ns]


@on_engines
def test_error_follows_a_nested_call_that_ended(primitives: Primitives) -> None:
    """The callee has run another generator before, so its own caller is the next one to catch."""
    stage = Stage(primitives)

    def callee() -> Steps:
        yield stage.works(3)
        yield stage.works(4)
        raise CallError("full")

    assert stage.run(stage.catches(callee())) == [
        (3, "worked"), (7, "worked"), (7, "full"), (7, "caller ends"),
    ]  # fmt: skip


@on_engines
def test_caller_makes_another_call_after_the_error(primitives: Primitives) -> None:
    """A second error is caught too, and a call that works returns to the caller."""
    stage = Stage(primitives)

    def body() -> Steps:
        for ns in (7, 0, 2):
            yield stage.catches(stage.fails(ns, f"after {ns}"), lambda: stage.works(1))
        yield stage.works(10)

    assert stage.run(body()) == [
        (7, "after 7"), (8, "worked"), (8, "caller ends"),
        (8, "after 0"), (9, "worked"), (9, "caller ends"),
        (11, "after 2"), (12, "worked"), (12, "caller ends"), (22, "worked"),
    ]  # fmt: skip
    assert stage.ends == [22]


@on_engines
def test_another_error_of_the_caller_replaces_the_first(primitives: Primitives) -> None:
    """The caller's caller gets the new one."""
    stage = Stage(primitives)

    def renames(callee: Steps) -> Steps:
        try:
            yield callee
        except CallError as error:
            raise CallError(f"{error} of files") from None

    assert stage.run(stage.catches(renames(stage.fails(7))))[0] == (7, "full of files")


@on_engines
def test_callers_clean_up_on_the_way(primitives: Primitives) -> None:
    """The innermost first; a wait of theirs takes its time before the error goes on."""
    stage = Stage(primitives)

    def cleans(callee: Steps, name: str, ns: int) -> Steps:
        try:
            yield callee
        finally:
            stage.note(name)
            if ns:
                yield ns

    callee = cleans(cleans(stage.fails(7), "inner", 4), "outer", 0)
    assert stage.run(stage.catches(callee)) == [
        (7, "inner"), (11, "outer"), (11, "full"), (11, "caller ends"),
    ]  # fmt: skip


@on_engines
def test_error_of_one_task_leaves_the_others_alone(primitives: Primitives) -> None:
    """At one instant, a task fails between two others, in the order of their ranks."""
    stage = Stage(primitives)
    first, after = stage.env.task("before"), stage.env.task("after")
    stage.env.start(after, stage.works(7))
    stage.env.start(first, stage.works(7))
    assert stage.run(stage.catches(stage.fails(7), lambda: stage.works(7))) == [
        (7, "full"), (7, "worked"), (7, "worked"), (14, "worked"), (14, "caller ends"),
    ]  # fmt: skip


@on_engines
def test_only_errors_of_calls_go_to_callers(primitives: Primitives) -> None:
    """Another exception is a fault of the model, which ends the run."""
    stage = Stage(primitives)

    def broken() -> Steps:
        yield 7
        raise RuntimeError("broken")

    def careless() -> Steps:
        try:
            yield broken()
        except RuntimeError:
            stage.note("caught")

    with pytest.raises(RuntimeError, match="broken"):
        stage.run(careless())
    assert stage.log == []
