"""A toolkit for discrete-event simulation on SimPy; it knows nothing about Linux."""
