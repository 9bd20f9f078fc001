"""A discrete-event laboratory of the Linux writeback path."""
