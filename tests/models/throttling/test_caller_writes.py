"""Writers that write back themselves."""

from __future__ import annotations

from models.page_cache.shares import Proportions
from models.throttling.caller_writes import Dirtier, lowered


def test_a_task_s_own_limit_falls_with_its_share() -> None:
    """A sole writer ends up near seven eighths; one that stopped gets its limit back within a few periods."""
    proportions, busy, idle = Proportions(1_000), Dirtier(), Dirtier()
    assert lowered(1_000, proportions, busy) == 1_000
    proportions.add(idle, 4_096)
    for _ in range(200):
        proportions.add(busy, 100)
    assert 870 <= lowered(1_000, proportions, busy) <= 900
    assert lowered(1_000, proportions, idle) >= 995
