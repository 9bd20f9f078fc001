"""The published reports: published and simulated figures, and the fits of calibrated constants.

Read `reproduce` first.  `figures` computes the published figures of a run.  `fit` has the loop of all fits,
and `calibrate` has the constants and the rows that they are fitted to.
"""
