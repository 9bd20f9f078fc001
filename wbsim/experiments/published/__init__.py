"""The published reports: their figures beside simulated ones, and fits of calibrated constants.

Read `reproduce` first.  `figures` takes the published figures off a run, `fit` is the loop of all fits, and
`calibrate` says which constant is fitted to which figures.
"""
