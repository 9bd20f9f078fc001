"""How writers are held back when too much is dirty."""
