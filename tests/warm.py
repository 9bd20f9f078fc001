"""``python -m tests.warm``: compile the Numba functions of one engine, so that no test waits for Numba.

WBSIM_ENGINE names the engine, as for the tests.  Small runs of both filesystems and of each path of writeback
call all functions with the types that a machine gives them.  `models.arrays.compiled` keeps the code for the
processes of pytest.  Functions that only tests call with other types are compiled in their tests.
"""

from __future__ import annotations

import os
from typing import Final

os.environ.setdefault("WBSIM_ENGINE", "light")

from tests.harness import FIO, loop_config
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.running.simulate import run_case

RUNS: Final = (
    ("6.18", "loop-xfs", f"{FIO} --rw=randwrite --filesize=6m --nrfiles=2 --name=a --directory=/a"),
    ("6.18", "loop-ext4", f"{FIO} --rw=randwrite --filesize=6m --nrfiles=2 --name=a --directory=/a"),
    ("6.18", "loop-xfs", "dd if=/dev/zero of=/a/f bs=1024k count=24"),
)


def main() -> None:
    """Simulate each of `RUNS`."""
    for kernel, filesystem, command in RUNS:
        text = loop_config(
            command, dirty_mib=4, kernel=kernel, filesystem=filesystem, more="sync_after = true"
        )
        for case in parse(text, "warm.toml").cases:
            run_case(case, 1)


if __name__ == "__main__":
    main()
