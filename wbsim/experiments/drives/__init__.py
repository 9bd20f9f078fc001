"""Drives: what fio would measure on one, and a drive from a data sheet or from fio's results.

`runs` measures a drive of the model.  `compare` puts the figures of the catalogue beside it.  `describe`
writes a drive.  The rule from a sheet to a drive is `wbsim.models.catalogue.sheets`.
"""
