"""The Python interface: experiments, results and captures for notebooks and scripts.

`study` loads, changes and runs an experiment, `findings` has its results, and `capture` judges a capture.
"""
