"""Everything around a run: configurations, running, statistics, pictures, reports and captures.

Data flows in one direction.  `config` reads an experiment.  `running` and `sweeps` run its cases and keep the
results.  `statistics` takes figures from the results, and `formats`, `pictures` and `why` show them.

`published` compares the model with the reports, and `captures` compares it with a real kernel.  `machines`
describes the machine of a user.  The two interfaces are `cli` with `commands`, and `python`.
"""
