"""Mutation testing: the number of small faults, planted one at a time, that the tests find."""
