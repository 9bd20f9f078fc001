"""Sweeps: every case of an experiment with its replications, and how many are done."""
