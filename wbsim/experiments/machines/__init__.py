"""Machines of one's own: described from what their kernels say."""
