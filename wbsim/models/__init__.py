"""The Linux writeback path, one file per mechanism; read `interfaces.py` first."""

import wbsim.sim  # noqa: F401  which chooses the build of the models, before any of them is imported
