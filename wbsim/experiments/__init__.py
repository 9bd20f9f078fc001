"""Everything around a run: configurations, running, statistics, pictures, reports and captures.

Data flows in one direction.  `config` reads what is asked; `running` and `sweeps` run it and keep results.
Then `statistics` reads figures off them, and `formats`, `pictures` and `why` show them.  `published` compares
with the reports, `captures` with a real kernel, and `machines` describes the machine of a user.  `cli` with
`commands`, and `python`, are the two ways in.
"""
