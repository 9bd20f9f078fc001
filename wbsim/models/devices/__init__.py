"""What takes the requests: media, write caches, arrays."""
