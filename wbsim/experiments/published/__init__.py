"""The published reports: their figures beside simulated ones, and the fit of what is calibrated."""
