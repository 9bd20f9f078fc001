"""What is dirty: the counters and thresholds, each context's share of them, the pages of a file."""
