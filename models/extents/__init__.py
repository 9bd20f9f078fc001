"""Where file pages lie: pages, free space, and what a filesystem decides.  Pure structures, compiled."""
