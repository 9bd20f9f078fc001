"""Sweeps: `run` runs every case of an experiment with its replications, and `status` counts them."""
