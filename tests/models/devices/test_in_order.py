"""Devices whose requests end in order of arrival."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wbsim.models.devices.in_order import InOrder
from wbsim.sim.engine import Environment


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30))
def test_each_request_ends_at_its_time_in_order_of_arrival(steps: list[tuple[int, int]]) -> None:
    """Each request ends at its time, in order of arrival, also if an end submits another request.

    At most one end is on the agenda.
    """
    env = Environment()
    ends, ended, expected = InOrder(env), list[tuple[int, int]](), list[tuple[int, int]]()
    at_ns = end_ns = 0

    def come(number: int, takes_ns: int) -> None:
        nonlocal end_ns
        end_ns = max(end_ns, env.now + takes_ns)
        expected.append((end_ns, number))
        ends.add(end_ns, lambda: finish(number, takes_ns))

    def finish(number: int, takes_ns: int) -> None:
        ended.append((env.now, number))
        if takes_ns == 5 and number < 1_000:
            come(number + 1_000, 0)

    for number, (gap_ns, takes_ns) in enumerate(steps):
        at_ns += gap_ns
        env.call_at(at_ns, 1 << 20, lambda number=number, takes_ns=takes_ns: come(number, takes_ns))
    most = [0]
    rank = env.next_rank()

    def look() -> None:
        most.append(sum(entry.rank == ends.rank for entry in env.agenda.entries()))
        if len(env.agenda):
            env.call_at(env.now + 1, rank, look)

    env.call_at(0, rank, look)
    env.run()
    assert ended == expected
    assert max(most) <= 1
