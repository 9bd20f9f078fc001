"""The numbers, tables and pictures of documents: one command makes them; tests compare the committed ones."""
