"""The rules that changed between releases of Linux, as rows of one table."""
