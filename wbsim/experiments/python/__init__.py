"""The Python interface: experiments, results and captures for notebooks and scripts.

`study` loads, changes and runs an experiment; `findings` are its results; `capture` judges a capture.
"""
