"""Runs: what one measures, who executes many of them, and where they are kept."""
