"""What all flushers share: the lists of a context, the work that is asked for, the loop that does it."""
