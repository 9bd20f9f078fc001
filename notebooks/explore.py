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
# A notebook needs only `import wbsim`. Load an experiment, change it, run it and look at the results.
# Each cell below answers one question.
# The runs are small, so that the complete notebook takes a minute. Remove `small` for runs of full size.

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
# Each point has three replications. The bands are 95 % intervals.

# %%
threads = dict.fromkeys(["workload.processes", "workload.directories"], [1, 2, 4, 8, 16, 32, 64])
found = wbsim.load("plug.toml").set(small).vary(threads, together=True).run(replications=3)
found.plot("workload.processes", ["write_iops", "file_rate"])

# %% [markdown]
# These results as a tidy frame, with units in the column names.

# %%
found.frame()[["variant", "workload.processes", "replication", "write_iops_per_s", "file_rate_per_s"]].head()

# %% [markdown]
# ## Two factors
# The number of requests with the plug, for several numbers of streams and several file sizes.

# %%
patched = wbsim.load("plug.toml").variant("patched").set({**small, "workload.directories": 8})
sizes = {"workload.processes": [8, 16, 32, 64], "workload.file_size": ["4 KiB", "16 KiB", "64 KiB"]}
patched.vary(sizes).run().heat_map("workload.processes", "workload.file_size")

# %% [markdown]
# ## Where does the time go?

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
# ## Three kernels, with intervals

# %%
kernels = patched.vary({"kernel.like": ["3.11", "5.15", "6.17"]}).run(replications=5)
kernels.plot("kernel.like", ["write_iops", "system_cpu_time"])

# %%
kernels.summary("write_iops")

# %% [markdown]
# ## Two kernels on your own capture
# `wbsim capture` records the bios of a real kernel. Here the plugs of two kernels get the same bios.

# %%
capture = wbsim.Capture(captures / "fsmark-xfs-ag8.trace.xz")
capture.what_if({"3.11": wbsim.PLUG_RULES["3.11"], "6.17": wbsim.PLUG_RULES["6.17"]})

# %% [markdown]
# ## Your own merge rule on this capture
# The captured kernel tries to merge a bio only with the newest request. The rule below tries all requests.
# The cell prints how many decisions stay equal.

# %%
mine = capture.rules.model_copy(update={"tried": "all"})
judged = capture.judge(mine)
print(f"{judged.decisions_equal} of {judged.decisions_total} decisions are equal to the kernel's")
