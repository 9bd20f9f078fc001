"""Results as text: our own tables, and those of the tools that everybody knows."""
