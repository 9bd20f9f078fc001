"""The numbers, tables and pictures of README: made by one command, and compared with what was committed."""
