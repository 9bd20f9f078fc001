# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # One plug around a slice of writeback
#
# Report P13 moves a plug three lines outward and loses 95 % of its write requests. This notebook runs the
# experiment small, draws requests and files per second against the number of threads, and then looks inside
# one plug. Open it with `jupyter lab` and jupytext, or run it as a script.

# %%
# %matplotlib inline
from wbsim.experiments.config.experiment import load
from wbsim.experiments.config.experiment import config_path
from wbsim.experiments.running.execute import How, run_jobs
from wbsim.experiments.running.jobs import Job
from wbsim.experiments.running.simulate import run_case

small = [
    "workload.files=400", "workload.loops=10",
    'machine.memory.memory="64 MiB"', 'machine.memory.kernel_reserve="0 B"',
]  # fmt: skip
experiment = load(config_path("plug.toml"), small)
print(experiment.title)

# %% [markdown]
# ## Both variants, small
# The same machine, kernel and dice; only `kernel.writeback.plug_scope` differs.

# %%
import pandas as pd

outcomes = [run_case(case, seed=1) for case in experiment.cases]
table = pd.DataFrame(
    [
        {
            "variant": o.variant,
            "files/s": round(o.create_rate),
            "write requests/s": round(o.write_iops),
            "mean request, KiB": round(o.write_bandwidth / o.write_iops / 1024, 1),
        }
        for o in outcomes
    ]
).set_index("variant")
table

# %% [markdown]
# ## Against the number of threads
# Each thread writes into a directory, hence an allocation group, of its own: the flusher sees as many
# interleaved streams. A plug of this era holds 16 requests. With more streams than that, every new request
# finds it full.

# %%
threads = load(
    config_path("plug_threads.toml"),
    ['machine.memory.memory="64 MiB"', 'machine.memory.kernel_reserve="0 B"', "workload.loops=1"],
)
wanted = [case for case in threads.cases if case.point["threads"] in (2, 8, 16, 17, 32)]
sweep = run_jobs([Job(case, 1) for case in wanted], How()).all_outcomes()

# %%
from wbsim.experiments.pictures.plots import line_picture
from wbsim.experiments.results.dataset import tidy

frame = tidy(sweep, threads.axes).rename(columns={"write_iops_per_s": "write_iops", "file_rate_per_s": "file_rate"})
line_picture(frame, "threads", ["write_iops", "file_rate"], ["variant"], threads.title, plug_requests=16)

# %% [markdown]
# ## Inside one plug
# The merge decision is a pure function over a sequence of bios: no simulation is needed. Four streams in
# turn, 4 KiB each.

# %%
from wbsim.models.bio import Bio
from wbsim.models.block.spec import QueueLimits
from wbsim.models.block.plug import plug_decisions
from wbsim.models.catalogue.kernels import PLUG_RULES

limits = QueueLimits(max_sectors_bytes=512 << 10, max_segments=128, max_segment_bytes=64 << 10, nomerges=0)


def bios(streams: int = 4, each: int = 6) -> list[Bio]:
    return [Bio(100_000 * stream + 8 * i, 8) for i in range(each) for stream in range(streams)]


decisions, batches = plug_decisions(bios(), PLUG_RULES["3.11"], limits)
for bio, decision in zip(bios(), decisions, strict=True):
    print(f"{bio.start_sector:>7} + {bio.sectors}  {decision.merge.value}")
print("issued:", batches[0])

# %% [markdown]
# The same bios under every era's rules: the walk over the whole list ended with 5.17.

# %%
pd.Series(
    {era: sum(map(len, plug_decisions(bios(8, 64), rules, limits)[1])) for era, rules in PLUG_RULES.items()},
    name="requests for 512 bios in 8 streams",
)

# %% [markdown]
# ## A process of your own
# `machine.env.simpy` is a SimPy environment on the model's clock (ns): processes, resources and timeouts run
# beside the model. Here an administrator calls `sync` again and again, and looks at how long each takes.

# %%
import simpy

from wbsim.models.machine import build
from wbsim.sim.units import MS

machine = build(wanted[0].scenario, seed=1)
took = []


def administrator(env: simpy.Environment):
    while True:
        yield env.timeout(50 * MS)
        called = env.now
        yield machine.sync()
        took.append((env.now - called) / MS)


machine.env.simpy.process(administrator(machine.env.simpy))
machine.run()
print(f"{len(took)} syncs of {min(took):.0f} to {max(took):.0f} ms")
