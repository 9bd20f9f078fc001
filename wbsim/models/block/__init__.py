"""Bios, plugs, merging, the request queue: from submit_bio to the driver."""
