"""Configurations, runs, sweeps, calibration, reports and the command line."""
