"""Sweeps: every case of an experiment with its replications, and how far they are."""
