"""Structures of arrays, and what compiles the functions over them."""
