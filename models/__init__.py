"""The Linux writeback path, one file per mechanism; read `seams.py` first."""
