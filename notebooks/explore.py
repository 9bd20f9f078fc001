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
# # Questions in three lines
#
# `import wbsim` is all that a notebook needs: load an experiment, change it, run it, look. Each cell below is one
# question. They are small, so that the whole notebook takes a minute; take the changes away for the real thing.

# %%
# %matplotlib inline
from pathlib import Path

import wbsim

small = {
    "machine.memory.memory": "64 MiB", "machine.memory.kernel_reserve": "0 B",
    "workload.files": 200, "workload.loops": 4,
}  # fmt: skip
captures = next(path for path in (Path("tests/captures"), Path("../tests/captures")) if path.exists())

# %% [markdown]
# ## IOPS against threads
# Three replications each; the bands are 95 % intervals.

# %%
threads = dict.fromkeys(["workload.processes", "workload.directories"], [1, 2, 4, 8, 16, 32, 64])
found = wbsim.load("plug.toml").set(small).vary(threads, together=True).run(replications=3)
found.plot("workload.processes", ["write_iops", "file_rate"])

# %% [markdown]
# The same as a tidy frame, with units in its names.

# %%
found.frame()[["variant", "workload.processes", "replication", "write_iops_per_s", "file_rate_per_s"]].head()

# %% [markdown]
# ## Over two factors
# How many requests the plug leaves, for streams and for sizes of a file.

# %%
patched = wbsim.load("plug.toml").variant("patched").set({**small, "workload.directories": 8})
sizes = {"workload.processes": [8, 16, 32, 64], "workload.file_size": ["4 KiB", "16 KiB", "64 KiB"]}
patched.vary(sizes).run().heat_map("workload.processes", "workload.file_size")

# %% [markdown]
# ## Where the time goes

# %%
both = wbsim.load("plug.toml").set({**small, "workload.files": 1000}).run()
print(both.explain())
both.where_time_goes()

# %% [markdown]
# ## Dirty pages over time

# %%
both.over_time()

# %%
both.levels().groupby("variant")[["dirty_mib", "writeback_mib"]].max()

# %% [markdown]
# ## Two kernels, with intervals

# %%
kernels = patched.vary({"kernel.like": ["3.11", "5.15", "6.17"]}).run(replications=5)
kernels.plot("kernel.like", ["write_iops", "system_cpu_time"])

# %%
kernels.summary("write_iops")

# %% [markdown]
# ## Two kernels on one's own capture
# What `wbsim capture` recorded on a real kernel: every era's plugs given the same bios.

# %%
capture = wbsim.Capture(captures / "fsmark-xfs-ag8.trace.xz")
capture.what_if({"3.11": wbsim.PLUG_RULES["3.11"], "6.17": wbsim.PLUG_RULES["6.17"]})

# %% [markdown]
# ## A merge rule of one's own, judged by that capture
# The kernel that was captured tries a bio against the newest request alone. Were all tried, how many of its
# decisions would be others?

# %%
mine = capture.rules.model_copy(update={"tried": "all"})
judged = capture.judge(mine)
print(f"{judged.decisions_equal} of {judged.decisions_total} decisions are the kernel's")
