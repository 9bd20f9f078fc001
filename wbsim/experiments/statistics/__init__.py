"""What many runs say together: figures, intervals, steady parts, and the tidy dataset."""
