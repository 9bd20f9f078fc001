"""Where file pages lie on disk, and which locks and logs that takes."""
